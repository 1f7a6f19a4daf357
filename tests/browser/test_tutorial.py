"""docs/tutorial/first-verdict.md, followed to the letter: from the demo to the guilty claim in three clicks."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "docs/tutorial/first-verdict.md").read_text().partition("## 2. ")[2].partition("\n## ")[0]
STEPS = re.findall(r"^\d\. (.+?\.)(?: |$)", SECTION, re.M)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """What the command of the tutorial prints behind `Page:`; the command runs until the test is over."""
    line = re.findall(r"```sh\n(.+?)\n```", SECTION)[0]
    program, *arguments = shlex.split(line)
    assert program == ".venv/bin/aftercheck"
    environ = {**os.environ, "AFTERCHECK_HOME": str(tmp_path), "AFTERCHECK_API_PORT": "0"}
    process = subprocess.Popen(
        [sys.executable, "-m", "aftercheck_worker.cli", *arguments],
        env=environ,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    told: list[str] = []
    for text in process.stdout:
        told.append(text)
        if match := re.search(r"Page: (\S+)", text):
            yield match[1]
            break
    else:
        pytest.fail("the demo ended:\n" + "".join(told[-40:]))
    process.terminate()
    process.communicate(timeout=60)


def follow(page: Page, step: str, address: str) -> None:
    """Do what a step says."""
    if step == "Open the address behind `Page:`.":
        page.goto(address)
    elif match := re.fullmatch(r"Click the first link under \*\*(.+)\*\*\.", step):
        page.get_by_role("heading", name=match[1]).locator("xpath=following-sibling::*").get_by_role(
            "link"
        ).first.click()
    elif match := re.fullmatch(r"Click the framed words under \*\*(.+)\*\*\.", step):
        text = page.get_by_role("heading", name=match[1], level=3).locator("xpath=following-sibling::*[1]")
        text.locator("a[aria-current]").click()
    else:
        pytest.fail(f"the test cannot follow {step!r}")
    page.wait_for_load_state("networkidle")


@pytest.mark.req("U01", "U20", "U30")
def test_a_newcomer_reaches_the_guilty_claim_in_three_clicks(chromium: Browser, address: str) -> None:
    assert len(STEPS) == 3
    page = chromium.new_page()
    page.set_default_timeout(30_000)
    for step in STEPS:
        follow(page, step, address)
    panel = page.locator("#claim")
    status = panel.locator(".verdict .tag").first.inner_text()
    assert status.split(" ", 1)[1] in ("contradicted", "not found")
    claim = panel.locator("blockquote").inner_text()
    assert claim
    assert page.locator(".answer-text a[aria-current]").inner_text().endswith(claim)
    assert page.get_by_role("heading", name="What the model saw").is_visible()
    page.close()
