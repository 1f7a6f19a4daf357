"""Model text that attacks the page: it must stay text. A control page proves that the vectors work at all (S32)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
Store = Callable[..., str]

VECTORS = (
    "<script>window.hit=1</script>",
    "<img src=x onerror=window.hit=1>",
    "<svg onload=window.hit=1>",
    "<svg><script>window.hit=1</script></svg>",
    "<body onload=window.hit=1>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "<iframe src=javascript:parent.hit=1></iframe>",
    "<details open ontoggle=window.hit=1>x</details>",
    "<input autofocus onfocus=window.hit=1>",
    "<video><source onerror=window.hit=1></video>",
    "<audio src=x onerror=window.hit=1></audio>",
    "<object data=javascript:window.hit=1></object>",
    "<embed src=javascript:window.hit=1>",
    "<a href=javascript:window.hit=1>click</a>",
    "<form action=javascript:window.hit=1><button>go</button></form>",
    "<math><mtext><script>window.hit=1</script></mtext></math>",
    "<style>@import 'javascript:window.hit=1'</style>",
    "<link rel=stylesheet href=data:text/css,*{color:red}>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content=0;url=https://evil.example/>",
    '"><script>window.hit=1</script>',
    "'><script>window.hit=1</script>",
    "</div></main><script>window.hit=1</script>",
    "--><script>window.hit=1</script>",
    "{{ 7*7 }}{% raw %}",
    "<div hx-get=/ui/health hx-trigger=load>x</div>",
    "<img src=x onerror=&#119;indow.hit=1>",
    "\u202eevil \u2066isolated\u2069 text",
    "zero\u200bwidth\ufeff and \u2060joiners",
    "<bdo dir=rtl>reversed</bdo></bdi></bdi>",
)


FORBIDDEN = "script, img, svg, iframe, object, embed, form, input, style, link, base, meta, bdo"


@pytest.mark.req("S32")
def test_thirty_vectors_stay_text(browse: Open, store: Store) -> None:
    answer = "\n".join(f"{n}. The plan costs 12 euro {vector} today." for n, vector in enumerate(VECTORS))
    trace_id = store(answer=answer, passage=answer, question=answer, model=answer[:150], app=answer[:150])
    page = browse(f"/ui/traces/{trace_id}")
    outside: list[str] = []
    page.on("request", lambda request: outside.append(request.url))
    page.reload(wait_until="networkidle")
    assert page.evaluate("window.hit") is None
    assert [url for url in outside if not url.startswith("http://127.0.0.1:")] == []
    assert page.locator(f".text :is({FORBIDDEN})").count() == 0
    assert page.evaluate("document.querySelectorAll('a[href^=javascript]').length") == 0
    for sign in ("U+202E", "U+200B", "U+FEFF", "U+2060"):
        assert page.locator(".hidden", has_text=sign).count() >= 1
    shown = page.locator(".answer-text").inner_text()
    assert "<script>window.hit=1</script>" in shown
    assert not set(shown) & {"\u202e", "\u2066", "\u200b", "\ufeff"}
    page.goto(page.url.split("/ui/")[0] + "/ui/traces")
    assert page.evaluate("window.hit") is None


@pytest.mark.req("S32")
def test_the_control_page_is_hit(chromium: Browser) -> None:
    page = chromium.new_page()
    hits = 0
    for vector in VECTORS[:14]:
        page.set_content(f"<div>{vector}</div>")
        page.wait_for_timeout(50)
        hits += page.evaluate("window.hit") == 1
        page.evaluate("delete window.hit")
    page.close()
    assert hits >= 6


@pytest.mark.req("S32")
def test_the_policy_stops_a_script_that_gets_through(browse: Open, store: Store) -> None:
    page = browse(f"/ui/traces/{store()}")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.hit=1>')")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
