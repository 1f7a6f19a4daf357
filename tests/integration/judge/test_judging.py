"""The judge's stage on real Postgres and Valkey, an endpoint over HTTP: routed, folded, finished exactly once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence

import msgspec
import psycopg
import pytest
import redis
from psycopg import sql
from psycopg.rows import TupleRow

from aftercheck_schemas import Claim, Verdict
from aftercheck_worker import judging, reconcile, testing
from aftercheck_worker.checking import Checker
from aftercheck_worker.evaluators import Evaluator, assemble
from aftercheck_worker.exporter import triad
from aftercheck_worker.judge import canaries
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.scoring import Policy
from aftercheck_worker.stages.verification import Findings, Item
from aftercheck_worker.storage import database, erasure, ledger, totals
from aftercheck_worker.storage import judging as stored
from tests.faults import opinion
from tests.faults.judge_server import JudgeServer, Reply, Script, serving

pytestmark = pytest.mark.integration

Connection = psycopg.Connection[TupleRow]
PASSAGE = "The monthly fee is five euros. Support answers within two days."
ANSWER = "The fee is five euros. Support answers within two days."


class Sure:
    """A verifier that is as sure as it is told, of every claim; shown quoted sources alone, it says `quoted`."""

    models = ()

    def __init__(self, probability: float, *, quoted: float = 0.6) -> None:
        self._probability, self._quoted = probability, quoted

    @property
    def parameters(self) -> dict[str, object]:
        """What it was told."""
        return {"probability": self._probability, "quoted": self._quoted}

    def verify(self, items: Sequence[Item]) -> list[Findings]:
        """One verdict per claim."""
        return [
            Findings(verdicts=tuple(self._verdict(item, claim) for claim in item.claims if claim.verifiable))
            for item in items
        ]

    def _verdict(self, item: Item, claim: Claim) -> Verdict:
        probability = self._probability if item.interaction.question else self._quoted
        return Verdict(
            claim_id=claim.id,
            status="supported" if probability >= 0.5 else "not_found",
            confidence=0.6,
            supported_probability=probability,
            reason="scripted",
        )


def evaluator(probability: float = 0.5, *, quoted: float = 0.6) -> Evaluator:
    return assemble("sure", Sure(probability, quoted=quoted), policy=Policy())


def says(status: str = "supported", quote: str = "The monthly fee is five euros.") -> Script:
    return opinion.says(status, quote)


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    with database.connect(database_url, name="test") as opened:
        opened.autocommit = True
        opened.execute("UPDATE ledger SET state = 'expired' WHERE state IN ('pending', 'checking', 'judging')")
        opened.execute("DELETE FROM total")
        opened.execute("DELETE FROM evaluation")
        yield opened


class Stage:
    """Checker and judger with one endpoint; messages to the judge are kept in `sent`."""

    def __init__(self, settings: Settings, server: JudgeServer, found: Evaluator, **changes: object) -> None:
        self.server = server
        values = {"judge_url": server.url, "judge_mode": "plain", "judge_audit": 0.0, "judge_canaries": 0.0}
        self.settings = settings.model_copy(update={**values, **changes})
        self.sent: list[int] = []
        assert settings.database_url is not None
        url = settings.database_url.get_secret_value()
        self.checker = Checker(
            self.settings,
            found,
            lambda: database.connect(url, name="checker"),
            testing.RecordingQueue(),
            self.sent.extend,
        )
        self.judger = judging.open_judger(self.settings, found, lambda: database.connect(url, name="judge"))

    def close(self) -> None:
        self.checker.close()
        self.judger.close()


@pytest.fixture
def stage(settings: Settings) -> Iterator[Callable[..., Stage]]:
    """Builds stages around a script, and closes them."""
    with contextlib.ExitStack() as opened:

        def build(script: Script | None = None, found: Evaluator | None = None, **changes: object) -> Stage:
            server = opened.enter_context(serving(script or says()))
            made = Stage(settings, server, found or evaluator(), **changes)
            opened.callback(made.close)
            return made

        yield build


def add(connection: Connection, count: int = 1, **changes: object) -> list[int]:
    interactions = [
        msgspec.structs.replace(
            testing.interaction(ANSWER, PASSAGE, question="What is the fee?", app="shop"), **changes
        )
        for _ in range(count)
    ]
    answers = [
        ledger.NewAnswer(
            tenant="default",
            trace_id=i.trace_id,
            span_id=i.span_id,
            app=i.app,
            weight=20.0,
            body=msgspec.json.encode(i),
        )
        for i in interactions
    ]
    with connection.transaction():
        found = {row.trace_id: row.evaluation_id for row in ledger.insert(connection, answers)}
    return [found[i.trace_id] for i in interactions]


def state(connection: Connection, number: int) -> tuple[str, str | None]:
    row = connection.execute("SELECT state, reason FROM ledger WHERE evaluation_id = %s", (number,)).fetchone()
    assert row is not None
    return row[0], row[1]


def verdicts(connection: Connection, number: int) -> list[tuple[str, str]]:
    return connection.execute(
        "SELECT status, decided_by FROM verdict WHERE evaluation_id = %s ORDER BY claim_id", (number,)
    ).fetchall()


def counted(connection: Connection, metric: str) -> dict[str, float]:
    return {total.name.key: total.value for total in totals.read(connection) if total.name.metric == metric}


@pytest.mark.req("R21", "R24", "R53")
def test_an_uncertain_answer_is_judged_and_finished_once(stage: Callable[..., Stage], connection: Connection) -> None:
    made = stage()
    (number,) = add(connection)

    made.checker.check([number])

    assert state(connection, number) == ("judging", None)
    assert made.sent == [number]
    assert verdicts(connection, number) == []
    assert counted(connection, totals.ANSWERS) == {}

    made.judger.judge([number])
    made.judger.judge([number])

    assert state(connection, number) == ("scored", None)
    assert verdicts(connection, number) == [("supported", "judge"), ("supported", "judge")]
    assert counted(connection, totals.ANSWERS) == {"grounded": 20.0}
    assert counted(connection, totals.FINALISED) == {"judge": 1.0}
    assert counted(connection, totals.JUDGE_ANSWERS) == {"judged": 1.0}
    assert counted(connection, totals.JUDGED) == {"band_agreed": 2.0}
    assert counted(connection, totals.GROUNDEDNESS_COUNT) == {"judge": 20.0, "encoder": 20.0}
    assert counted(connection, totals.CONTEXT_RELEVANCE_SUM) == {"judge": 20.0}
    assert counted(connection, totals.ANSWER_RELEVANCE_SUM) == {"judge": 20.0}
    # three repeats about the claims, one call each for the two relevances
    assert counted(connection, totals.JUDGE_CALLS) == {"": 5.0}
    assert counted(connection, totals.JUDGE_TOKENS) == {"prompt": 35.0, "completion": 15.0}


@pytest.mark.req("R24", "I6")
def test_quotes_are_stored_with_their_offsets(stage: Callable[..., Stage], connection: Connection) -> None:
    made = stage()
    (number,) = add(connection)

    made.checker.check([number])
    made.judger.judge([number])

    found = connection.execute(
        "SELECT text, start, \"end\" FROM evidence WHERE evaluation_id = %s AND claim_id = 'c1'", (number,)
    ).fetchall()
    assert found == [("The monthly fee is five euros.", 0, 30)]
    kept = connection.execute(
        "SELECT criterion, repeat, score, late FROM judgement WHERE evaluation_id = %s ORDER BY 1, 2", (number,)
    ).fetchall()
    assert kept == [
        ("answer_relevance", 0, 1.0, False),
        ("context_relevance", 0, 1.0, False),
        *(("faithfulness", repeat, 1.0, False) for repeat in range(3)),
    ]


def test_a_sure_answer_needs_no_judge(stage: Callable[..., Stage], connection: Connection) -> None:
    made = stage(found=evaluator(0.95))
    (number,) = add(connection)

    made.checker.check([number])

    assert state(connection, number) == ("scored", None)
    assert made.sent == []
    assert counted(connection, totals.FINALISED) == {"verifier": 1.0}


def test_an_audit_compares_and_changes_nothing(stage: Callable[..., Stage], connection: Connection) -> None:
    made = stage(says("not_found"), evaluator(0.95), judge_audit=1.0)
    (number,) = add(connection)

    made.checker.check([number])
    made.judger.judge([number])

    assert verdicts(connection, number) == [("supported", "verifier")] * 2
    assert counted(connection, totals.FINALISED) == {"verifier": 1.0}
    assert counted(connection, totals.JUDGED) == {"disagreed": 2.0}


@pytest.mark.req("R53")
def test_an_audited_answer_weighs_by_the_inverse_of_its_chance(
    stage: Callable[..., Stage], connection: Connection
) -> None:
    made = stage(found=evaluator(0.95), judge_audit=0.5)
    numbers = add(connection, 16)  # by chance 65,535 of 65,536 runs would route at least one; the ids are fixed

    made.checker.check(numbers)
    made.judger.judge(made.sent)

    judged = len(made.sent)
    assert 0 < judged < 16
    assert counted(connection, totals.GROUNDEDNESS_COUNT)["judge"] == judged * 20.0 / 0.5
    assert counted(connection, totals.ANSWERS) == {"grounded": 16 * 20.0}
    windows = triad.read(connection, {"tenant": "default", "seconds": 300})
    assert {(one.criterion, one.method): one.evaluations for one in windows} == {
        ("groundedness", "judge"): judged,
        ("groundedness", "encoder"): judged,
        ("context_relevance", "judge"): judged,
        ("answer_relevance", "judge"): judged,
    }


@pytest.mark.req("S13")
def test_a_support_that_the_quote_does_not_bear_changes_nothing_for_the_better(
    stage: Callable[..., Stage], connection: Connection
) -> None:
    made = stage(says("supported"), evaluator(0.4, quoted=0.05))
    (number,) = add(connection)

    made.checker.check([number])
    made.judger.judge([number])

    assert [status for status, _ in verdicts(connection, number)] == ["not_found", "not_found"]
    assert counted(connection, totals.JUDGE_REFUSED) == {"": 2.0}


@pytest.mark.req("F19", "P7")
@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (opinion.always(Reply(status=400)), "judge_refused"),
        (opinion.always(Reply(content="no")), "judge_unparsable"),
        (opinion.always(Reply(status=429, headers={"retry-after": "90"})), "judge_rate_limited"),
    ],
)
def test_a_judge_that_fails_leaves_the_verifiers_verdict(
    stage: Callable[..., Stage], connection: Connection, script: Script, reason: str
) -> None:
    made = stage(script, judge_triad=False)
    (number,) = add(connection)

    made.checker.check([number])
    made.judger.judge([number])

    assert state(connection, number) == ("scored", None)
    assert verdicts(connection, number) == [("supported", "verifier_fallback")] * 2
    assert counted(connection, totals.FINALISED) == {"verifier_fallback": 1.0}
    assert counted(connection, totals.EVALUATOR_FAILURES).keys() == {reason}
    assert counted(connection, totals.ANSWERS) == {"grounded": 20.0}
    assert counted(connection, totals.GROUNDEDNESS_COUNT).get("judge") is None


@pytest.mark.req("F18")
def test_a_long_retry_after_puts_the_answer_off(stage: Callable[..., Stage], connection: Connection) -> None:
    made = stage(opinion.always(Reply(status=429, headers={"retry-after": "20"})))
    (number,) = add(connection)
    made.checker.check([number])

    made.judger.judge([number])

    assert state(connection, number) == ("judging", None)
    row = connection.execute(
        "SELECT extract(epoch FROM not_before - now()) FROM ledger WHERE evaluation_id = %s", (number,)
    ).fetchone()
    assert row is not None
    assert 10 < row[0] <= 20

    resent: list[int] = []
    reconciler = reconcile.Reconciler(made.settings, testing.RecordingQueue(), send_judge=resent.extend)
    reconciler.once(connection)
    assert resent == []

    connection.execute("UPDATE ledger SET not_before = now() WHERE evaluation_id = %s", (number,))
    reconciler.once(connection)
    assert resent == [number]
    assert counted(connection, totals.RECONCILED) == {"judging": 1.0}

    made.server.script = says()
    made.judger.judge(resent)
    assert verdicts(connection, number) == [("supported", "judge")] * 2


def meanwhile(connect: Callable[[], Connection], do: Callable[[Connection], object]) -> Script:
    """A judge during whose first call something else happens."""

    def script(number: int, request: dict[str, object]) -> Reply:
        if number == 0:
            with connect() as other:
                other.autocommit = True
                do(other)
        return says("contradicted")(number, request)

    return script


@pytest.fixture
def connect(database_url: str) -> Callable[[], Connection]:
    return lambda: database.connect(database_url, name="meanwhile")


def test_an_overdue_answer_is_the_verifiers_and_a_late_judgement_changes_nothing(
    stage: Callable[..., Stage], connection: Connection, connect: Callable[[], Connection], settings: Settings
) -> None:
    (number,) = add(connection)
    reports: list[reconcile.Report | None] = []

    def overdue(other: Connection) -> None:
        other.execute("UPDATE ledger SET judge_deadline = now() WHERE evaluation_id = %s", (number,))
        reports.append(reconcile.Reconciler(settings, testing.RecordingQueue()).once(other))

    made = stage(meanwhile(connect, overdue), judge_repeats=1, judge_triad=False)
    made.checker.check([number])
    made.judger.judge([number])

    assert [report.overdue for report in reports if report is not None] == [(number,)]
    assert verdicts(connection, number) == [("supported", "verifier_fallback")] * 2
    assert counted(connection, totals.EVALUATOR_FAILURES) == {"judge_deadline": 1.0}
    assert counted(connection, totals.JUDGE_ANSWERS) == {"fallback": 1.0, "late": 1.0}
    assert counted(connection, totals.ANSWERS) == {"grounded": 20.0}
    late = connection.execute("SELECT criterion, late FROM judgement WHERE evaluation_id = %s", (number,)).fetchall()
    assert late == [("faithfulness", True)]


@pytest.mark.req("S35")
def test_nothing_of_an_answer_that_was_erased_meanwhile_comes_back(
    stage: Callable[..., Stage], connection: Connection, connect: Callable[[], Connection]
) -> None:
    (number,) = add(connection, trace_id="e" * 32)

    def erase(other: Connection) -> None:
        with other.transaction():
            erasure.erase(other, "default", "e" * 32, actor="test", elsewhere={})

    made = stage(meanwhile(connect, erase), judge_repeats=1, judge_triad=False)
    made.checker.check([number])
    made.judger.judge([number])

    assert state(connection, number) == ("erased", None)
    for table in ("judgement", "evaluation", "verdict", "evidence", "claim", "interaction"):
        row = connection.execute(
            sql.SQL("SELECT count(*) FROM {} WHERE evaluation_id = %s").format(sql.Identifier(table)), (number,)
        ).fetchone()
        assert row == (0,), table


@pytest.mark.req("F27", "I4")
def test_a_second_delivery_asks_nobody_twice(
    stage: Callable[..., Stage], connection: Connection, connect: Callable[[], Connection]
) -> None:
    (number,) = add(connection)
    again: list[object] = []
    made = stage(meanwhile(connect, lambda other: again.extend(stored.claim(other, [number], 60))))
    made.checker.check([number])

    made.judger.judge([number])
    made.judger.judge([number])

    assert again == []
    assert len(made.server.requests) == 5
    assert counted(connection, totals.JUDGE_ANSWERS) == {"judged": 1.0}


@pytest.mark.req("O-40", "R29")
def test_a_spent_budget_leaves_the_verifier_and_asks_nobody(
    stage: Callable[..., Stage], connection: Connection
) -> None:
    made = stage(judge_tokens_per_day=100)
    (number,) = add(connection)

    made.checker.check([number])
    made.judger.judge([number])

    assert counted(connection, totals.EVALUATOR_FAILURES) == {"judge_budget": 1.0}
    assert verdicts(connection, number) == [("supported", "verifier_fallback")] * 2
    assert len(made.server.requests) == 0


def test_the_budget_is_the_fleets_and_settles_what_was_really_spent(
    stage: Callable[..., Stage], connection: Connection, redis_url: str
) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        made = stage(judge_prompt_price=2.0, judge_completion_price=10.0)
        made.checker.check(add(connection))
        made.judger.judge(made.sent)
        (key,) = client.keys("*:judge:budget:*")
        balance = client.hgetall(key)

    # five calls of 7 + 3 tokens, as the endpoint reports them
    assert balance == {b"tokens": b"50", b"micros": b"220"}
    assert counted(connection, totals.JUDGE_DOLLARS) == {"": pytest.approx(220e-6)}


@pytest.mark.req("F19")
def test_a_broken_endpoint_is_soon_not_asked_any_more(stage: Callable[..., Stage], connection: Connection) -> None:
    made = stage(opinion.always(Reply(status=500)), judge_triad=False, judge_repeats=1, judge_call_seconds=0.5)
    first, rest = add(connection, 6), add(connection, 3)

    made.checker.check(first)
    made.judger.judge(first)
    asked = len(made.server.requests)
    made.checker.check(rest)
    made.judger.judge(rest)

    assert len(made.server.requests) == asked
    found = counted(connection, totals.EVALUATOR_FAILURES)
    assert found["judge_circuit_open"] >= 3
    assert sum(found.values()) == 9
    assert counted(connection, totals.FINALISED) == {"verifier_fallback": 9.0}


def knowing(number: int, request: dict[str, object]) -> Reply:
    """A judge that knows the canaries, and supports everything else."""
    del number
    found = opinion.data(request)
    known = {canary.right: canary for canary in canaries.known()} | {c.wrong: c for c in canaries.known()}
    verdicts: list[dict[str, object]] = []
    for claim in found["claims"]:
        canary = known.get(claim["text"])
        quote = canary.passage.partition(". ")[0] if canary else "The monthly fee is five euros."
        right = canary is None or claim["text"] == canary.right
        verdicts.append(
            {
                "claim_id": claim["claim_id"],
                "evidence": [quote],
                "status": "supported" if right else "contradicted",
                "confidence": 1.0,
            }
        )
    return Reply(content=json.dumps({"verdicts": verdicts}))


def credulous(number: int, request: dict[str, object]) -> Reply:
    """A judge that supports everything, canaries included."""
    return Reply(content=knowing(number, request).content.replace("contradicted", "supported"))


@pytest.mark.req("S14")
@pytest.mark.parametrize(("script", "kept", "result"), [(knowing, b"1", "passed"), (credulous, b"0", "failed")])
def test_a_judge_that_supports_everything_fails_its_canaries(
    stage: Callable[..., Stage],
    connection: Connection,
    redis_url: str,
    script: Script,
    kept: bytes,
    result: str,
) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        made = stage(script, judge_canaries=1.0, judge_triad=False)
        made.checker.check(add(connection))
        made.judger.judge(made.sent)

        assert client.lrange(canaries.outcomes_key("default"), 0, -1) == [kept]
    assert counted(connection, totals.CANARY) == {result: 1.0}


def test_messages_are_hints_one_takes_all_that_waits(stage: Callable[..., Stage], connection: Connection) -> None:
    made = stage(judge_triad=False, judge_repeats=1, batch_size=4)
    numbers = add(connection, 10)
    made.checker.check(numbers)

    made.judger.judge(numbers[:1])

    assert {state(connection, number) for number in numbers} == {("scored", None)}
    assert counted(connection, totals.JUDGE_ANSWERS) == {"judged": 10.0}


def test_every_sampled_answer_is_judged_on_request(stage: Callable[..., Stage], connection: Connection) -> None:
    made = stage(
        says("contradicted", "Support answers within two days."), evaluator(0.95, quoted=0.1), judge_share="all"
    )
    (number,) = add(connection)

    made.checker.check([number])
    made.judger.judge([number])

    assert verdicts(connection, number) == [("contradicted", "judge")] * 2
    assert len(made.server.requests) == 3  # sure of all claims: one repeat, and the two relevances


@pytest.mark.req("R25")
def test_the_judge_is_part_of_the_version(stage: Callable[..., Stage], connection: Connection) -> None:
    made = stage()
    made.checker.check(add(connection))
    made.judger.judge(made.sent)

    rows = connection.execute(
        "SELECT v.name, v.spec->'judge'->'parameters'->>'mode', v.spec->>'verifier' <> v.version FROM evaluation AS e"
        " JOIN evaluator AS v ON v.version = e.evaluator_version WHERE e.evaluation_id = %s",
        (made.sent[0],),
    ).fetchall()
    assert rows == [("sure", "plain", True)]
