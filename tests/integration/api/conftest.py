"""A real application over real stores, a client per token, and one stored answer."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from fastapi.testclient import TestClient

from aftercheck_schemas import Interaction, Passage
from aftercheck_worker import pipeline
from aftercheck_worker.api import create, tokens
from aftercheck_worker.api.checker import Checker
from aftercheck_worker.api.state import State
from aftercheck_worker.api.tokens import TokenBook
from aftercheck_worker.evaluators import Evaluator
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import database, ledger, results
from aftercheck_worker.testing import ScriptedVerifier, evaluator

Client = Callable[..., TestClient]
Store = Callable[..., str]
_numbers = itertools.count(0xA000)
PASSAGE = "Plans start at 12 euro a month. Support is not included."
ANSWER = "The plan costs 12 euro. It includes support."


@pytest.fixture
def scripted() -> Evaluator:
    return evaluator(ScriptedVerifier({"It includes support.": "contradicted"}))


@pytest.fixture
def client(settings: Settings, tmp_path: Path, scripted: Evaluator) -> Iterator[Client]:
    """Makes a client; `scopes` gives it a token of its own, none opens the server to loopback."""
    opened: list[TestClient] = []
    path = tmp_path / "tokens.json"

    def make(*scopes: tokens.Scope, tenant: str = "default", **changes: object) -> TestClient:
        number = next(_numbers)
        word = tokens.add(path, f"t{number}", scopes, tenant=tenant) if scopes else ""
        found = settings.model_copy(update={"api_tokens_file": path, **changes})
        checker = Checker(
            scripted, most=found.api_max_checks, seconds=found.api_check_seconds, pairs=found.batch_pairs
        )
        app = create(State(found, checker, TokenBook(path)))
        client = TestClient(app, base_url="http://127.0.0.1:8080", raise_server_exceptions=False)
        if word:
            client.headers["Authorization"] = f"Bearer {word}"
        client.__enter__()
        opened.append(client)
        return client

    yield make
    for one in opened:
        one.__exit__(None, None, None)


@pytest.fixture
def store(database_url: str, scripted: Evaluator) -> Store:
    """Stores an evaluated answer and returns its trace id."""

    def make(
        answer: str = ANSWER,
        passage: str = PASSAGE,
        tenant: str = "default",
        judge: Evaluator | None = None,
        **fields: object,
    ) -> str:
        number = next(_numbers)
        plain = Interaction(
            trace_id=f"{number:08x}{number:024x}",
            span_id=f"{number:016x}",
            app="shop",
            model="model-a",
            question="What does the plan cost?",
            answer=answer,
            passages=(Passage(source_id="prices", text=passage),),
            context_source="recorded",
            context_confidence=1.0,
            answered_at=time.time_ns(),
        )
        body = msgspec.structs.replace(plain, **fields)
        new = ledger.NewAnswer(
            tenant=tenant,
            trace_id=body.trace_id,
            span_id=body.span_id,
            app=body.app,
            answered_at=body.answered_at,
            body=msgspec.json.encode(body),
        )
        with database.connect(database_url, name="test") as connection:
            made = ledger.insert(connection, [new])
            works = ledger.claim(connection, [row.evaluation_id for row in made])
            done = pipeline.evaluate_batch([body], judge or scripted)
            results.finalise(
                connection,
                [results.Finished(work=works[0], evaluation=done[0], labels=results.Labels.of(body))],
            )
        return body.trace_id

    return make
