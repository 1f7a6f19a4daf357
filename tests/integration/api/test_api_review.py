"""Thumbs beside verdicts: the four cells, correlations, and the privacy review that makes a regression case."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import urlencode

import msgspec
import pytest
from fastapi.testclient import TestClient

from aftercheck_schemas import Passage
from aftercheck_schemas.golden import EvidenceRecord, GoldenCase
from aftercheck_worker.storage import database, feedback, thumbs
from tests.integration.api.test_api_pages import logged_in

pytestmark = pytest.mark.integration

Client = Callable[..., TestClient]
Store = Callable[..., str]


def field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}"[^>]*?(?:value="([^"]*)"|>([^<]*)</textarea>)', page)
    assert found is not None, name
    return unescape(found[1] if found[1] is not None else found[2])


def thumb(database_url: str, trace_id: str, value: int, comment: str = "") -> None:
    with database.connect(database_url, name="test") as connection:
        feedback.put(connection, "default", feedback.Feedback(trace_id=trace_id, value=value, comment=comment))


@pytest.fixture
def rejected(store: Store, database_url: str) -> int:
    """A grounded answer with personal data that its user rejects; returns its evaluation id."""
    trace_id = store(
        answer="The plan costs 12 euro. Ask ann@example.org or +49 30 1234567.",
        question="May ann@example.org know the price?",
        passages=(Passage(source_id="prices", text="The plan costs 12 euro for ann@example.org.", trust=0.5),),
    )
    thumb(database_url, trace_id, -1, comment="<b>wrong</b>")
    with database.connect(database_url, name="test") as connection:
        row = connection.execute("SELECT evaluation_id FROM ledger WHERE trace_id = %s", (trace_id,)).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.req("R6", "R38", "R46")
def test_a_disagreement_becomes_a_redacted_case_with_its_evidence(client: Client, rejected: int) -> None:
    app = logged_in(client("admin"))
    queue = app.get("/ui/disagreements").text
    assert "&lt;b&gt;wrong" in queue
    assert f'href="/ui/review/{rejected}"' in queue
    form = app.get(f"/ui/review/{rejected}").text
    assert "ann@example.org" not in form
    fields = {name: field(form, name) for name in ("csrf", "query", "answer", "passage-0", "claim-0", "said-0")}
    (mark,) = re.findall(r"<EMAIL_[0-9a-f]{6}>", fields["query"])
    assert fields["query"] == f"May {mark} know the price?"
    assert re.fullmatch(rf"The plan costs 12 euro. Ask {mark} or <PHONE_[0-9a-f]{{6}}>\.", fields["answer"])
    fields |= {
        "expected": "ungrounded",
        "status-0": "not_found",
        "source-0": "0",
        "span-0": f"12 euro for {mark}",
        "private": "none",
    }

    assert app.post(f"/ui/review/{rejected}", content=urlencode(fields)).url.path == "/ui/disagreements"

    (line,) = app.get("/ui/regressions.jsonl").text.splitlines()
    case = msgspec.json.decode(line, type=GoldenCase)
    assert (case.query, case.expected, case.source) == (fields["query"], "ungrounded", "feedback")
    assert (case.context[0].text, case.context[0].trust) == (f"The plan costs 12 euro for {mark}.", 0.5)
    (claim,) = case.claims
    assert (claim.text, claim.status) == (fields["claim-0"], "not_found")
    (record,) = claim.evidence
    assert isinstance(record, EvidenceRecord)
    assert (record.document, record.span, record.reviewer) == ("prices", f"12 euro for {mark}", case.reviewer)
    assert min(record.verified_at, case.verified_at) > 0
    assert "reviewed" in app.get("/ui/disagreements").text


@pytest.mark.req("R46")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"private": ""}, "Confirm that no personal data"),
        ({"query": "Ask bob@example.org"}, "Ask <EMAIL_"),
        ({"passage-0": "Card 4111 1111 1111 1111"}, "Card <CARD_"),
        ({"claim-0": "Something else."}, "does not stand in the answer"),
        ({"span-0": "13 euro"}, "does not stand in its passage"),
        ({"status-0": "true"}, "unknown status"),
        ({"expected": "grounded"}, "contradict each other"),
    ],
)
def test_a_bad_review_is_refused_and_loses_nothing(
    client: Client, rejected: int, change: dict[str, str], why: str
) -> None:
    app = logged_in(client("admin"))
    before = app.get("/ui/regressions.jsonl").text
    form = app.get(f"/ui/review/{rejected}").text
    good = {name: field(form, name) for name in ("csrf", "query", "answer", "passage-0", "claim-0")}
    good |= {"status-0": "not_found", "source-0": "0", "span-0": "12 euro", "private": "none"}
    reply = app.post(f"/ui/review/{rejected}", content=urlencode({**good, **change}))
    assert reply.status_code == 422
    assert why in unescape(reply.text)
    assert field(reply.text, "answer") == good["answer"]
    assert app.get("/ui/regressions.jsonl").text == before


@pytest.mark.req("R46")
def test_only_an_admin_with_the_page_s_word_reviews(client: Client, rejected: int) -> None:
    app = logged_in(client("admin"))
    assert app.post(f"/ui/review/{rejected}", content="query=q&private=none").status_code == 403
    many = "&".join(f"f{n}=1" for n in range(2000))
    assert app.post(f"/ui/review/{rejected}", content=many).status_code == 422
    assert logged_in(client("read")).get(f"/ui/review/{rejected}").status_code == 403
    assert logged_in(client("admin", tenant="other")).get(f"/ui/review/{rejected}").status_code == 404


@pytest.mark.req("R6")
def test_thumbs_are_correlated_with_every_triad_score(client: Client, store: Store, database_url: str) -> None:
    for number in range(12):
        good = number % 3 != 0
        trace_id = store(answer="The plan costs 12 euro." if good else "It includes support.", app="triad")
        thumb(database_url, trace_id, 1 if good else -1)
        with database.connect(database_url, name="test") as connection:
            connection.execute(
                "INSERT INTO judgement (day, evaluation_id, evaluator_version, criterion, repeat, score, body)"
                " SELECT day, evaluation_id, evaluator_version, criterion, 0, score, '{}' FROM evaluation,"
                " (VALUES ('context_relevance', %s::float8), ('answer_relevance', 1)) AS v (criterion, score)"
                " WHERE trace_id = %s",
                (0.2 if good else 0.9, trace_id),
            )
            connection.commit()
    with database.connect(database_url, name="test") as connection:
        (cells,) = (one for one in thumbs.cells(connection, "default") if one.app == "triad")
        found = {one.criterion: one for one in thumbs.correlations(connection, "default") if one.app == "triad"}
    assert (cells.grounded_up, cells.grounded_down, cells.ungrounded_up, cells.ungrounded_down) == (8, 0, 0, 4)
    assert {name: one.answers for name, one in found.items()} == dict.fromkeys(found, 12)
    assert found["faithfulness"].value == pytest.approx(1)
    assert found["context_relevance"].value == pytest.approx(-1)
    assert found["answer_relevance"].value is None
    page = unescape(logged_in(client("read")).get("/ui/disagreements").text)
    assert "r = -1.00" in page
    assert "12 answers: too few or all alike" in page
    assert "66.7 % (39.1 % to 86.2 %)" in page
