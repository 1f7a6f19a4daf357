"""Renders the documentation's screenshots from seeded data; `SCREENSHOTS=docs/images` keeps them (U24)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser import seeds

pytestmark = pytest.mark.browser

Open = Callable[..., Page]
Store = Callable[..., str]
SHOTS = ((1100, False, "wide"), (360, True, "phone-dark"))


@pytest.mark.req("U24", "U31")
@pytest.mark.parametrize(("width", "dark", "suffix"), SHOTS)
def test_pages_are_drawn(
    browse: Open,
    store: Store,
    database_url: str,
    plans_trace: str,
    tmp_path: Path,
    width: int,
    dark: bool,
    suffix: str,
) -> None:
    folder = Path(os.environ.get("SCREENSHOTS") or tmp_path)
    seeds.traffic(database_url)
    seeds.thumbs(database_url)
    store(app="search", answer="The plan costs 12 euro.")
    pages = {
        "incident": "/traces?alert=FaithfulnessLow&app=support-bot&flagged=true&window=30m",
        "trace": f"/ui/traces/{plans_trace}",
        "disagreements": "/ui/disagreements",
        "health": "/ui/health",
        "evidence": f"/ui/traces/{plans_trace}?claim=c3",
    }
    page = browse("/ui/traces", width=width, dark=dark)
    base = page.url.split("/ui/")[0]
    for name, path in pages.items():
        page.goto(base + path)
        shot = page.screenshot(path=folder / f"{name}-{suffix}.png", full_page=True)
        assert len(shot) > 5_000
