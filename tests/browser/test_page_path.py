"""From an alert's link to the guilty claim and its evidence, with mouse, keyboard, phone, and without JavaScript."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests.browser import seeds

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
Store = Callable[..., str]


@pytest.mark.req("U30", "R5")
@pytest.mark.parametrize("javascript", [True, False])
def test_an_alert_leads_to_the_guilty_claim_in_three_clicks(browse: Open, store: Store, javascript: bool) -> None:
    app = f"checkout-{javascript}"
    trace_id = store(app=app)
    at = int(time.time())
    # Click one is the link in the page to PagerDuty: what a rule annotates, and what Alertmanager adds to it.
    page = browse(f"/traces?app={app}&flagged=true&window=30m&alert=FaithfulnessLow&at={at}", javascript=javascript)
    assert page.url.partition("?")[0].endswith("/ui/incidents")
    assert page.get_by_text("FaithfulnessLow").is_visible()
    assert page.get_by_role("link", name="runbook").get_attribute("href") == "/docs/runbooks/FaithfulnessLow"
    page.get_by_role("link", name="It includes support.").click()
    page.wait_for_url(lambda url: trace_id in url)
    page.locator("a.claim.contradicted").click()
    page.wait_for_url(lambda url: "claim=c2" in url)
    assert "It includes support." in page.locator("#claim blockquote").inner_text()
    assert page.locator("#claim .verdict .tag.contradicted").first.is_visible()


@pytest.mark.req("U30")
def test_the_incident_names_what_changed(browse: Open, database_url: str) -> None:
    seeds.traffic(database_url)
    page = browse("/traces?app=support-bot&flagged=true&window=30m")
    (suspect,) = page.locator(".notice.bad").all_inner_texts()
    assert suspect.startswith("prompt version support-v7 is new here and hallucinated in")
    row = page.get_by_role("row", name="support-v7")
    assert row.locator(".tag").all_inner_texts() == ["worse", "new"]
    assert page.get_by_role("row", name="support-v6").locator(".tag").count() == 0
    assert "aftercheck recheck --since" in page.locator("main").inner_text()


@pytest.mark.req("R5", "U31")
def test_evidence_is_marked_in_its_passage(browse: Open, store: Store, lexical_trace: str) -> None:
    page = browse(f"/ui/traces/{lexical_trace}?claim=c1")
    assert "12 euro" in page.locator("details.source mark").first.inner_text()


@pytest.mark.req("R24", "R25", "R47")
def test_judge_and_verifier_stand_side_by_side(browse: Open, plans_trace: str) -> None:
    page = browse(f"/ui/traces/{plans_trace}")
    panel = page.locator("#claim")
    assert seeds.WRONG in panel.locator("blockquote").inner_text()
    words = panel.locator(".verdict").inner_text()
    assert "repeats: contradicted, not found, contradicted" in words
    assert "The price list says <b>12</b> euro a month" in words
    assert "supported from 0." in words
    assert panel.locator("tr", has_text="faithfulness").locator(".num").all_inner_texts() == ["0.60", "0.80", "3"]
    assert page.locator(".answer-text .redacted", has_text="EMAIL").count() == 1
    page.locator("a.claim", has_text="Support by mail").click()
    page.locator("#claim blockquote", has_text="Support by mail").wait_for()
    rows = dict(zip(panel.locator("dt").all_inner_texts(), panel.locator("dd").all_inner_texts(), strict=True))
    assert "decided by the judge" in rows["Verdict"]
    assert "unclear sure to 0.55" in rows["Verifier"]
    page.locator("a.claim", has_text="15 euro").click()
    page.locator("#claim blockquote", has_text="15 euro").wait_for()
    panel.get_by_role("link", name="prices.md").first.click()
    assert page.locator("details.source:target mark").first.is_visible()


@pytest.mark.req("U31")
def test_another_claim_opens_in_place_and_keeps_the_focus(browse: Open, plans_trace: str) -> None:
    page = browse(f"/ui/traces/{plans_trace}")
    page.evaluate("window.same = true")
    page.locator("a.claim", has_text="Support by mail").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "claim=" in url)
    page.locator("#claim blockquote", has_text="Support by mail").wait_for()
    assert page.evaluate("window.same") is True
    assert "Support by mail" in page.evaluate("document.activeElement.textContent")
    page.go_back()
    page.locator("#claim blockquote", has_text="15 euro").wait_for()


@pytest.mark.req("U31")
def test_the_keyboard_reaches_a_claim(browse: Open, store: Store) -> None:
    page = browse(f"/ui/traces/{store()}")
    page.locator("#main").focus()
    for _ in range(10):
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.className")
        if "claim" in focused:
            break
    assert "claim" in page.evaluate("document.activeElement.className")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "claim=" in url)


@pytest.mark.req("U31")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    "path", ["/ui/traces", "/ui/incidents", "/ui/health", "/ui/disagreements", "/ui/dlq", "{trace}"]
)
def test_pages_fit_a_phone_and_have_contrast(browse: Open, store: Store, path: str, dark: bool) -> None:
    trace_id = store()
    page = browse(path.replace("{trace}", f"/ui/traces/{trace_id}"), width=360, dark=dark)
    overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert overflow <= 0
    low = page.evaluate(CONTRAST)
    assert low == []


@pytest.mark.req("U31")
def test_a_thousand_claims_render(browse: Open, store: Store) -> None:
    answer = " ".join(f"Plan number {n} costs {n + 3} euro." for n in range(1000))
    page = browse(f"/ui/traces/{store(answer=answer)}")
    assert page.locator("a.claim").count() == 1000


@pytest.mark.req("S35")
def test_a_trace_is_erased_from_its_page(browse: Open, store: Store) -> None:
    trace_id = store()
    page = browse(f"/ui/traces/{trace_id}")
    page.get_by_text("Erase this trace").click()
    page.get_by_label("Type the first 8 digits").fill(trace_id[:8])
    page.get_by_role("button", name="Erase every copy").click()
    page.get_by_text("Erased on request at").wait_for()
    assert "includes support" not in page.content()


CONTRAST = """
() => {
  const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const lum = ([r, g, b]) => {
    const f = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const ground = (node) => {
    for (let n = node; n; n = n.parentElement) {
      const c = parse(getComputedStyle(n).backgroundColor);
      if (c.length < 4 || c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !node.getClientRects().length) continue;
    const a = lum(parse(getComputedStyle(node).color)), b = lum(ground(node));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(node.tagName + ' ' + node.className + ' ' + ratio.toFixed(2));
  }
  return low;
}
"""
