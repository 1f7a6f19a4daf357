from __future__ import annotations

import pytest

from aftercheck_schemas import Chunk, LogRecord, SpanRecord
from aftercheck_schemas.sessions import session_of
from aftercheck_worker.stages.assembly import assemble

TRACE = "ab" * 16


def span(number: int, **more: object) -> SpanRecord:
    defaults: dict[str, object] = {"trace_id": TRACE, "span_id": f"{number:016x}", "start": number, "end": number + 1}
    return SpanRecord(**(defaults | more))  # type: ignore[arg-type]


def log(text: str, *, time: int = 0) -> LogRecord:
    return LogRecord(trace_id=TRACE, span_id="1" * 16, event_name="gen_ai.user.message", time=time, body=text)


@pytest.mark.req("O-18")
def test_span_sent_twice_counts_once_and_the_richer_copy_wins() -> None:
    poor, rich = span(1, attributes={"a": 1}), span(1, attributes={"a": 1, "b": 2})
    for chunks in ([Chunk(spans=(poor,)), Chunk(spans=(rich,))], [Chunk(spans=(rich,)), Chunk(spans=(poor,))]):
        assert assemble(TRACE, "app", chunks).spans == (rich,)


@pytest.mark.req("O-19")
def test_ended_span_beats_a_started_one() -> None:
    started, ended = span(1, end=0, attributes={"a": 1, "b": 2}), span(1, end=9, attributes={"a": 1})
    assert assemble(TRACE, "app", [Chunk(spans=(ended, started))]).spans == (ended,)


def test_spans_are_sorted_by_start_and_parents_come_first() -> None:
    child, parent, later = span(1, start=5, end=6), span(2, start=5, end=9), span(3, start=7)
    trace = assemble(TRACE, "app", [Chunk(spans=(later, child)), Chunk(spans=(parent,))])
    assert trace.spans == (parent, child, later)


def test_spans_and_logs_of_another_trace_are_left_out() -> None:
    other = span(2, trace_id="cd" * 16)
    stray = LogRecord(trace_id="cd" * 16, body="x")
    trace = assemble(TRACE, "app", [Chunk(spans=(span(1), other), logs=(stray,))])
    assert trace.spans == (span(1),)
    assert trace.logs == ()


def test_repeated_chunk_adds_no_log_but_a_repeated_word_in_one_chunk_stays() -> None:
    chunk = Chunk(logs=(log("yes"), log("yes"), log("no")))
    assert len(assemble(TRACE, "app", [chunk, chunk]).logs) == 3


def test_logs_are_sorted_by_time() -> None:
    trace = assemble(TRACE, "app", [Chunk(logs=(log("b", time=2),)), Chunk(logs=(log("a", time=1),))])
    assert [record.body for record in trace.logs] == ["a", "b"]


def test_dropped_spans_make_the_trace_incomplete() -> None:
    chunks = [Chunk(spans=(span(1),))]
    assert assemble(TRACE, "app", chunks).complete
    assert not assemble(TRACE, "app", chunks, dropped=1).complete
    assert not assemble(TRACE, "app", chunks, complete=False).complete


@pytest.mark.parametrize("mark", [{"truncated": ("x",)}, {"dropped_attributes": 3}])
def test_cut_attributes_mark_the_trace(mark: dict[str, object]) -> None:
    assert assemble(TRACE, "app", [Chunk(spans=(span(1, **mark),))]).truncated
    assert not assemble(TRACE, "app", [Chunk(spans=(span(1),))]).truncated


@pytest.mark.req("R30")
def test_session_comes_from_the_strongest_key() -> None:
    weak = span(1, attributes={"traceloop.association.properties.thread_id": "t"})
    plain = span(2, attributes={"session.id": "s"})
    own = span(3, attributes={"aftercheck.session.id": "mine", "gen_ai.conversation.id": "c"})
    assert session_of([weak]) == "t"
    assert session_of([weak, plain]) == "s"
    assert session_of([weak, plain, own]) == "mine"
    assert session_of([span(4, attributes={"session.id": True})]) == ""
    assert assemble(TRACE, "app", [Chunk(spans=(weak,))], session_id="header").session_id == "header"


def test_environment_comes_from_the_resource_when_the_header_has_none() -> None:
    chunk = Chunk(resource={"deployment.environment.name": "staging"})
    assert assemble(TRACE, "app", [chunk]).environment == "staging"
    assert assemble(TRACE, "app", [chunk], environment="prod").environment == "prod"


def test_the_convention_for_dialogues_names_the_session_before_the_one_for_visits() -> None:
    visit = span(1, attributes={"session.id": "visit", "langfuse.session.id": "vendor"})
    dialogue = span(2, attributes={"gen_ai.conversation.id": "dialogue"})
    assert session_of([visit]) == "visit"
    assert session_of([visit, dialogue]) == "dialogue"
    assert assemble(TRACE, "app", [Chunk(resource={}, spans=(visit, dialogue))]).session_id == "dialogue"
