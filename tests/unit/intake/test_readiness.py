"""When a trace is read: a table of the rule, and its edges."""

from __future__ import annotations

import pytest

from aftercheck_schemas import EntryHeader
from aftercheck_worker.intake.readiness import Patience, Ready, Wait, readiness, seen

TRACE = "0" * 32


def header(root: bool = False, remote_root: bool = False, otlp: bool = False, dropped: int = 0) -> EntryHeader:
    return EntryHeader(
        app="a",
        trace_id=TRACE,
        root=root,
        remote_root=remote_root,
        source="otlp" if otlp else "sdk",
        dropped=dropped,
    )


@pytest.mark.req("F28")
@pytest.mark.parametrize(
    ("headers", "last", "now", "expected"),
    [
        ([header(root=True)], 0, 2.9, Wait(3)),
        ([header(root=True)], 0, 3, Ready(True)),
        ([header(), header(root=True)], 10, 12, Wait(13)),
        ([header(root=True, otlp=True)], 0, 14, Wait(15)),
        ([header(root=True, otlp=True)], 0, 15, Ready(True)),
        ([header(root=True), header(otlp=True)], 0, 3, Wait(15)),
        ([header(root=True, remote_root=True)], 0, 29, Wait(30)),
        ([header(root=True, remote_root=True)], 0, 30, Ready(True)),
        ([header()], 0, 29, Wait(30)),
        ([header()], 0, 30, Ready(False)),
        ([header(root=True, dropped=1)], 0, 3, Ready(False)),
        ([header(root=True)], 599, 600, Ready(False)),
        ([header()], 599, 600, Ready(False)),
        ([header()], 590, 595, Wait(600)),
    ],
)
def test_rule(headers: list[EntryHeader], last: float, now: float, expected: Ready | Wait) -> None:
    assert readiness(seen(headers), first=0, last=last, now=now, patience=Patience()) == expected


@pytest.mark.req("F28")
def test_a_parentless_root_beside_a_remote_one_decides() -> None:
    facts = seen([header(root=True, remote_root=True), header(root=True)])

    assert facts.root
    assert readiness(facts, first=0, last=0, now=3, patience=Patience()) == Ready(True)
