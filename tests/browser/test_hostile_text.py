"""Model text that attacks the page: it must stay text. A control page proves that the vectors work at all (S32)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote_plus, urlencode

import msgspec
import pytest
from jinja2 import Environment
from playwright.sync_api import Browser, Page

from aftercheck_schemas import ClaimJudgement, Evidence, Judgement, Passage, Versions
from aftercheck_worker.storage import database, dead_letters, feedback

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


ACTIVE = """
(boxes) => {
  const made = 'script, img, svg, iframe, object, embed, form, input, style, link, base, meta, bdo, math, '
    + 'video, audio';
  const live = (node) => [...node.attributes].some(
    (one) => /^(on|hx-)/.test(one.name) || /^\\s*javascript:/i.test(one.value));
  const found = [];
  for (const box of document.querySelectorAll(boxes)) {
    for (const node of box.querySelectorAll('*')) {
      if (node.matches(made) || live(node)) found.push(node.outerHTML.slice(0, 80));
    }
    const hidden = /[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\ufeff\\u2060]/;
    if (hidden.test(box.textContent)) found.push('hidden character');
  }
  return found;
}
"""
"""What became of text inside `boxes`: elements, handlers, hidden characters. The same for pages and control."""
BOXES = "bdi, .text, q"


@pytest.fixture
def hostile(store: Store, database_url: str) -> dict[str, str]:
    """Every vector in every field that a model, a user or a judge fills."""
    text = "\n".join(f"{n}. The plan costs 12 euro {vector} today." for n, vector in enumerate(VECTORS))
    versions = Versions(prompt=text[:150], retriever=text[:150], corpus=text[:150])
    passages = (Passage(source_id=text[:200], text=text, name=text[:200]),)
    trace_id = store(
        answer=text + " It includes support.",
        question=text,
        passages=passages,
        model=text[:150],
        app=text[:150],
        environment=text[:100],
        session_id=text[:100],
        versions=versions,
        rendered=text,
        parameters={text[:60]: text},
    )
    with database.connect(database_url, name="test") as connection:
        row: Any = connection.execute(
            "SELECT day, evaluation_id, evaluator_version, app FROM evaluation WHERE trace_id = %s", (trace_id,)
        ).fetchone()
        claims = connection.execute("SELECT claim_id FROM claim WHERE evaluation_id = %s", (row[1],)).fetchall()
        quote = Evidence(source_id=text[:200], start=0, end=5, text=text[:300], score=0.5)
        judged = tuple(
            ClaimJudgement(claim_id=one[0], status="contradicted", rationale=text, evidence=(quote,))
            for one in claims
        )
        judgement = Judgement(model=text[:100], claims=judged, faithfulness=(0.5,), labels=(text[:100],))
        connection.execute(
            "INSERT INTO judgement (day, evaluation_id, evaluator_version, criterion, repeat, score, body)"
            " VALUES (%s, %s, %s, 'faithfulness', 0, 0.5, %s::jsonb)",
            (*row[:3], msgspec.json.encode(judgement).decode()),
        )
        feedback.put(connection, "default", feedback.Feedback(trace_id=trace_id, value=1, comment=text[:1000]))
        dead_letters.add_entry(connection, "default", trace_id, "invalid_json", detail=text, app=text[:150])
        connection.commit()
    return {"trace": trace_id, "evaluation": str(row[1]), "app": str(row[3])}


@pytest.mark.req("S32")
def test_thirty_vectors_stay_text_on_every_page(browse: Open, hostile: dict[str, str]) -> None:
    page = browse("/ui/traces")
    base = page.url.partition("/ui/")[0]
    outside: list[str] = []
    page.on("request", lambda request: outside.append(request.url))
    for path in (
        "/ui/traces",
        "/ui/traces?" + urlencode({"app": hostile["app"], "trace": VECTORS[0]}),
        f"/ui/traces/{hostile['trace']}",
        f"/ui/traces/{hostile['trace']}?claim=" + quote_plus(VECTORS[10]),
        "/ui/incidents?" + urlencode({"app": hostile["app"], "alert": VECTORS[0]}),
        "/ui/disagreements",
        f"/ui/review/{hostile['evaluation']}",
        "/ui/health?" + urlencode({"app": hostile["app"]}),
        "/ui/dlq",
    ):
        page.goto(base + path, wait_until="networkidle")
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate(ACTIVE, BOXES) == [], path
        assert page.evaluate("window.hit") is None, path
        assert "window.hit" in page.content(), path  # the text did reach the page
    assert [url for url in outside if not url.startswith("http://127.0.0.1:")] == []


@pytest.mark.req("S32")
def test_hidden_characters_are_named_and_templates_are_not_run(browse: Open, hostile: dict[str, str]) -> None:
    page = browse(f"/ui/traces/{hostile['trace']}")
    for sign in ("U+202E", "U+2066", "U+200B", "U+FEFF", "U+2060"):
        assert page.locator(".answer-text .hidden", has_text=sign).count() >= 1
    shown = page.locator(".answer-text").first.inner_text()
    assert "<script>window.hit=1</script>" in shown
    assert "{{ 7*7 }}{% raw %}" in shown


@pytest.mark.req("S32")
@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_each_vector_does_something_where_nothing_is_escaped(chromium: Browser, number: int) -> None:
    vector = VECTORS[number]
    if "{{" in vector:  # against the templates, not the browser
        assert Environment().from_string(vector).render().startswith("49")
        return
    page = chromium.new_page()
    page.route("https://evil.example/**", lambda route: route.abort())
    unsafe = f"<div class='text'>{vector}</div>"
    if "refresh" in vector:
        with page.expect_request("https://evil.example/"):
            page.set_content(unsafe, wait_until="commit")
        page.close()
        return
    page.set_content(unsafe, wait_until="commit")
    assert page.evaluate(ACTIVE, "html") or page.evaluate("window.hit === 1")
    page.close()


@pytest.mark.req("S32")
def test_the_control_page_runs_scripts(chromium: Browser) -> None:
    page = chromium.new_page()
    for vector in VECTORS[:3]:
        page.set_content(f"<div>{vector}</div>")
        page.wait_for_function("window.hit === 1")
        page.evaluate("delete window.hit")
    page.close()


@pytest.mark.req("S32")
def test_the_policy_stops_a_script_that_gets_through(browse: Open, store: Store) -> None:
    page = browse(f"/ui/traces/{store()}")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.hit=1>')")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
