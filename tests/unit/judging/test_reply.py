"""Every reply of the case file gives exactly the expected parse; nothing becomes a score by accident."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypedDict, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftercheck_schemas import Passage
from aftercheck_worker.stages.judging import ParsedReply, parse_reply

CASES = Path(__file__).parents[2] / "cases" / "judge_replies.jsonl"


class ExpectedVerdict(TypedDict):
    claim_id: str
    status: str


class Expected(TypedDict):
    parse: str
    verdicts: list[ExpectedVerdict]


class Case(TypedDict):
    id: str
    claims: list[str]
    context: list[str]
    raw: str
    expected: Expected


def cases() -> list[Case]:
    return [cast("Case", json.loads(line)) for line in CASES.read_text(encoding="utf-8").splitlines()]


def parse(raw: str, claims: int = 3, *context: str) -> ParsedReply:
    texts = context or ("Paint list: A red. C is blue.",)
    passages = [Passage(source_id=f"s{i}", text=text) for i, text in enumerate(texts, 1)]
    return parse_reply(raw, [f"c{i}" for i in range(1, claims + 1)], passages)


def verdict(claim_id: str = "c1", **changes: object) -> dict[str, object]:
    base: dict[str, object] = {
        "claim_id": claim_id,
        "evidence": ["A red"],
        "rationale": "stated",
        "status": "supported",
        "confidence": 0.9,
    }
    return base | changes


def statuses(reply: ParsedReply) -> list[str | None]:
    return [claim.status for claim in reply.claims]


@pytest.mark.req("R23", "R24", "F21")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_case_file(case: Case) -> None:
    reply = parse(case["raw"], len(case["claims"]), *case["context"])

    assert reply.parse == case["expected"]["parse"]
    assert [{"claim_id": c.claim_id, "status": c.status or "error"} for c in reply.claims] == case["expected"][
        "verdicts"
    ]


@pytest.mark.parametrize(
    ("wrapped", "word"),
    [
        ('<think>{"verdicts": []} maybe</think>%s', "ok"),
        ("```\n%s\n```", "ok"),
        ("Sure!\n\n%s\n\n{not json", "ok"),
        ("%s, ]", "ok"),
    ],
)
def test_wrappings(wrapped: str, word: str) -> None:
    reply = parse(wrapped % json.dumps({"verdicts": [verdict()]}), 1)

    assert (reply.parse, statuses(reply)) == (word, ["supported"])


@pytest.mark.parametrize(
    "payload",
    [
        [verdict()],
        {"findings": [verdict()]},
        {"results": [verdict(id="c1")]},
        {"verdicts": {"c1": {k: v for k, v in verdict().items() if k != "claim_id"}}},
        verdict(status="Supported"),
        {"verdicts": [verdict(evidence="A red")]},
        {"verdicts": [verdict(evidence=[{"source": "s1", "text": "A red"}])]},
        {"verdicts": [verdict(evidence=[{"source_id": "nowhere", "quote": "A RED"}])]},
    ],
)
def test_aliases(payload: object) -> None:
    assert statuses(parse(json.dumps(payload), 1)) == ["supported"]


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "yes"},
        {"status": "correct"},
        {"status": ""},
        {"status": None},
        {"status": 1},
        {"confidence": 1.7},
        {"confidence": -0.1},
        {"confidence": "high"},
        {"confidence": None},
        {"claim_id": None},
    ],
)
def test_a_bad_verdict_is_an_error_of_its_claim_only(changes: dict[str, object]) -> None:
    raw = json.dumps({"verdicts": [verdict() | changes, verdict("c2")]})

    reply = parse(raw, 2)

    assert (reply.parse, statuses(reply), reply.missing) == ("partial", [None, "supported"], ("c1",))


@pytest.mark.req("P7")
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_number_that_is_none(number: str) -> None:
    raw = json.dumps({"verdicts": [verdict(confidence=0.5)]}).replace("0.5", number)

    assert parse(raw, 1).parse == "error"


@pytest.mark.req("S12")
@pytest.mark.parametrize(
    "quote",
    ["A was painted red", "red", "ed. C", "", "...", "C is blue. A red", "the"],
)
def test_void_quotes_never_support(quote: str) -> None:
    reply = parse(json.dumps({"verdicts": [verdict(evidence=[quote])]}), 1)

    assert (reply.parse, statuses(reply), reply.claims[0].void_quotes) == ("ok_downgraded", ["unclear"], 1)


def test_quote_offsets_are_verbatim() -> None:
    source = "Intro.  The “Alpha–2”\n unit weighs 3\u00a0kg — dry."
    reply = parse(json.dumps({"verdicts": [verdict(evidence=['the "alpha-2" unit weighs 3 kg'])]}), 1, source)

    (found,) = reply.claims[0].evidence
    assert source[found.start : found.end] == found.text == "The “Alpha–2”\n unit weighs 3\u00a0kg"


def test_a_quote_belongs_to_the_source_it_names() -> None:
    raw = json.dumps({"verdicts": [verdict(evidence=[{"source_id": "s2", "quote": "A red"}])]})

    assert parse(raw, 1, "A red.", "C is blue.").parse == "ok_downgraded"


def test_an_ellipsis_joins_parts_in_order() -> None:
    raw = json.dumps({"verdicts": [verdict(evidence=["Paint list ... blue."])]})
    backwards = json.dumps({"verdicts": [verdict(evidence=["C is blue ... Paint list"])]})

    assert len(parse(raw, 1).claims[0].evidence) == 2
    assert parse(backwards, 1).parse == "ok_downgraded"


def test_extra_claims_are_dropped_and_named() -> None:
    reply = parse(json.dumps({"verdicts": [verdict(), verdict("c9")]}), 1)

    assert (reply.parse, reply.extra) == ("ok_extra_dropped", ("c9",))


def test_two_different_verdicts_are_none() -> None:
    raw = json.dumps({"verdicts": [verdict(), verdict(status="not_found"), verdict("c2")]})

    assert statuses(parse(raw, 2)) == [None, "supported"]


def test_a_reply_cut_by_length_keeps_what_is_whole() -> None:
    raw = json.dumps({"verdicts": [verdict(), verdict("c2")]})[:-40]

    reply = parse(raw, 2)

    assert (reply.parse, reply.claims[0].status, reply.claims[1].status) == ("partial", "supported", None)


@pytest.mark.req("F21")
@given(st.text(max_size=300))
def test_any_text_is_an_error_not_an_exception(raw: str) -> None:
    assert parse(raw, 1).parse == "error"


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["verdicts", "claim_id", "status", "evidence", "confidence", "c1", "quote"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_any_json_is_an_error_not_an_exception(value: object) -> None:
    reply = parse(json.dumps(value), 1)

    assert all(claim.status != "supported" for claim in reply.claims)


def test_deep_and_long_replies_end() -> None:
    assert parse("[" * 100_000, 1).parse == "error"
    assert parse("{" * 5_000, 1).parse == "error"
    assert parse('{"verdicts": [' * 3_000, 1).parse == "error"
