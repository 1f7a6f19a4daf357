"""No page has a serious fault that axe-core finds, in light and dark, on a desk and on a phone (U31)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from aftercheck_worker.storage import database, dead_letters, feedback
from tests.browser import seeds

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
AXE = Path(__file__).parent / "axe"
RUN = """
async () => {
  const found = await axe.run(document, { resultTypes: ['violations'] });
  return found.violations
    .filter((one) => one.impact === 'serious' || one.impact === 'critical')
    .map((one) => one.id + ': ' + one.nodes.map((node) => node.html.slice(0, 120)).slice(0, 3).join(' | '));
}
"""
PATHS = (
    "/ui/traces",
    "/ui/incidents?app=support-bot&alert=FaithfulnessLow",
    "/ui/disagreements",
    "/ui/health",
    "/ui/dlq",
    "/ui/traces/{trace}",
    "/ui/review/{evaluation}",
)


def faults(page: Page) -> list[str]:
    page.evaluate((AXE / "axe.min.js").read_text())
    found: list[str] = page.evaluate(RUN)
    return found


@pytest.fixture
def addresses(database_url: str, plans_trace: str) -> dict[str, str]:
    """Something to see on every page."""
    seeds.traffic(database_url)
    with database.connect(database_url, name="test") as connection:
        row: Any = connection.execute(
            "SELECT evaluation_id FROM ledger WHERE trace_id = %s", (plans_trace,)
        ).fetchone()
        feedback.put(connection, "default", feedback.Feedback(trace_id=plans_trace, value=1, comment="fine"))
        dead_letters.add_answer(connection, "default", int(row[0]), plans_trace, "support-bot", "poison")
        dead_letters.add_entry(connection, "default", f"1-{row[0]}", "invalid_json", app="shop")
        connection.commit()
    return {"trace": plans_trace, "evaluation": str(row[0])}


@pytest.mark.req("U31")
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (360, True)])
def test_axe_finds_nothing_serious(browse: Open, addresses: dict[str, str], width: int, dark: bool) -> None:
    page = browse("/ui/traces", width=width, dark=dark)
    base = page.url.partition("/ui/")[0]
    found: dict[str, list[str]] = {}
    for path in PATHS:
        page.goto(base + path.format(**addresses))
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        found[path] = faults(page)
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, path
    page.context.clear_cookies()
    page.goto(base + "/ui/login")
    found["login"] = faults(page)
    assert {path: one for path, one in found.items() if one} == {}


@pytest.mark.req("U31")
def test_axe_finds_a_fault_that_is_there(browse: Open) -> None:
    page = browse("/ui/traces")
    page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<input><a href=\"/ui\"></a>')")
    assert {one.partition(":")[0] for one in faults(page)} == {"label", "link-name"}


def test_axe_is_the_released_file() -> None:
    digest = hashlib.sha256((AXE / "axe.min.js").read_bytes()).hexdigest()
    assert digest in (AXE / "README.md").read_text()
