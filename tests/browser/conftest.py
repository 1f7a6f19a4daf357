"""The shipped page in real Chromium, over real stores."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, sync_playwright

from aftercheck_worker import evaluators
from aftercheck_worker.api import create, tokens
from aftercheck_worker.api.checker import Checker
from aftercheck_worker.api.state import State
from aftercheck_worker.api.tokens import TokenBook
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.settings import Settings, load
from tests.browser import seeds
from tests.integration.api.conftest import scripted, store

__all__ = ["scripted", "store"]

ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
Open = Callable[..., Page]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def site(settings: Settings, tmp_path: Path, scripted: Evaluator) -> Iterator[tuple[str, str]]:
    """Address of a running server, and an admin token."""
    path = tmp_path / "tokens.json"
    word = tokens.add(path, "oncall", ["admin"])
    checker = Checker(scripted, most=4, seconds=10, pairs=20_000)
    app = create(State(settings, checker, TokenBook(path)))
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, access_log=False)
    socket = config.bind_socket()
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{socket.getsockname()[1]}", word
    server.should_exit = True
    thread.join(20)
    socket.close()


@pytest.fixture
def browse(chromium: Browser, site: tuple[str, str]) -> Iterator[Open]:
    """Opens a logged-in page at a path; keywords go to the browser context. Any script error fails the test."""
    errors: list[str] = []
    contexts: list[Callable[[], None]] = []

    def one(
        path: str, *, javascript: bool = True, width: int = 1200, dark: bool = False, log_in: bool = True
    ) -> Page:
        context = chromium.new_context(
            java_script_enabled=javascript,
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
        )
        contexts.append(context.close)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(f"dialog {dialog.message}"))
        page.goto(site[0] + path)
        if log_in:
            page.get_by_label("Token").fill(site[1])
            page.get_by_role("button", name="Log in").click()
            page.wait_for_url(lambda url: "/ui/login" not in url)
        return page

    yield one
    for close in contexts:
        close()
    assert errors == []


@pytest.fixture(scope="session")
def shipped() -> Evaluator:
    """The verifier that the wheel carries."""
    return evaluators.resolve(evaluators.GROUNDING, load({}))


@pytest.fixture
def plans_trace(settings: Settings, database_url: str, store: Callable[..., str], shipped: Evaluator) -> str:
    """An answer of five claims, checked by the shipped verifier and seen by a judge."""
    return seeds.plans(store, database_url, shipped)


@pytest.fixture
def lexical_trace(settings: Settings, store: Callable[..., str]) -> str:
    """An answer whose claim has real evidence, from the lexical baseline."""
    return store(
        answer="The plan costs 12 euro a month.",
        passage="Read this first. The plan costs 12 euro a month.",
        judge=evaluators.resolve(evaluators.LEXICAL, settings),
    )
