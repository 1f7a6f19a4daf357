"""All tables (architecture.md "Storage"). Alembic's models and the running code read these definitions.

The ledger is narrow and unpartitioned: one row per answer span, and the only place that decides who may write a
result. Payload tables are partitioned by `day`, the ledger row's day of first insert, which never changes.
Scores are NULL or inside [0, 1]; NaN fails the CHECK because NaN <= 1 is false in Postgres (it sorts above all).
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Double,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from aftercheck_schemas.vocabulary import CLAIM_STATUSES, CLAIM_TYPES, ORIGINS, OUTCOMES, STATES

metadata: Final = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_DOUBLE: Final[Double[float]] = Double()

PARTITIONED: Final = ("interaction", "evaluation", "claim", "verdict", "evidence", "judgement")
"""Tables split by day; children are named `<table>_pYYYYMMDD`, with `<table>_pdefault` as a net."""


def _one_of(column: str, words: tuple[str, ...]) -> CheckConstraint:
    return CheckConstraint(f"{column} IN ({', '.join(repr(word) for word in words)})", name=column)


def _score(column: str) -> CheckConstraint:
    return CheckConstraint(f"{column} IS NULL OR ({column} >= 0 AND {column} <= 1)", name=column)


def _now(name: str, **kwargs: Any) -> Column[Any]:
    return Column(name, DateTime(timezone=True), nullable=False, server_default=func.now(), **kwargs)


def _key_columns() -> list[Column[Any]]:
    return [
        Column("day", Date, primary_key=True),
        Column("evaluation_id", BigInteger, primary_key=True, autoincrement=False),
    ]


ledger: Final = Table(
    "ledger",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("trace_id", Text, primary_key=True),
    Column("span_id", Text, primary_key=True),
    Column("evaluation_id", BigInteger, Identity(always=True), nullable=False, unique=True),
    Column("day", Date, nullable=False),
    Column("app", Text, nullable=False),
    Column("state", Text, nullable=False, server_default="pending"),
    Column("reason", Text),
    Column("origin", Text, nullable=False, server_default="production"),
    Column("priority", SmallInteger, nullable=False, server_default="0", comment="1 goes to check.high"),
    Column("weight", _DOUBLE, nullable=False, server_default="1", comment="1 / sampling probability"),
    Column("rate_version", Integer, nullable=False, server_default="0"),
    Column("pairs", Integer, nullable=False, server_default="0", comment="estimated claim x passage pairs"),
    Column("attempts", SmallInteger, nullable=False, server_default="0"),
    Column("solo", Boolean, nullable=False, server_default="false"),
    Column("not_before", DateTime(timezone=True)),
    Column("judge_deadline", DateTime(timezone=True)),
    Column("answered_at", DateTime(timezone=True)),
    _now("created_at"),
    _now("updated_at"),
    Column("finalised_at", DateTime(timezone=True)),
    _one_of("state", STATES),
    _one_of("origin", ORIGINS),
    CheckConstraint("weight > 0 AND weight < 'Infinity'", name="weight"),
)
Index(
    "ix_ledger_open",
    ledger.c.updated_at,
    postgresql_where=text("state IN ('pending', 'checking', 'judging')"),
)
Index("ix_ledger_trace_id", ledger.c.trace_id)
Index("ix_ledger_finalised_at", ledger.c.finalised_at)

interaction: Final = Table(
    "interaction",
    metadata,
    *_key_columns(),
    Column("body", JSONB, nullable=False, comment="aftercheck_schemas.Interaction"),
    postgresql_partition_by="RANGE (day)",
)

evaluation: Final = Table(
    "evaluation",
    metadata,
    *_key_columns(),
    Column("run_id", Text, primary_key=True, server_default="online"),
    Column("evaluator_version", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("span_id", Text, nullable=False),
    Column("app", Text, nullable=False),
    Column("environment", Text, nullable=False, server_default=""),
    Column("model", Text, nullable=False, server_default=""),
    Column("prompt_version", Text, nullable=False, server_default=""),
    Column("retriever_version", Text, nullable=False, server_default=""),
    Column("evaluator", Text, nullable=False),
    Column("quality", Text, nullable=False, server_default="standard"),
    Column("origin", Text, nullable=False),
    Column("weight", _DOUBLE, nullable=False),
    Column("session_id", Text, nullable=False, server_default=""),
    Column("turn", Integer, nullable=False, server_default="0"),
    Column("call_index", Integer, nullable=False, server_default="1"),
    Column("context_tokens", Integer, nullable=False, server_default="0"),
    Column("outcome", Text, nullable=False),
    Column("reason", Text),
    Column("faithfulness", _DOUBLE),
    Column("faithfulness_upper", _DOUBLE),
    Column("supported_probability", _DOUBLE),
    Column("hallucinated", Boolean, nullable=False, server_default="false"),
    Column("critical", Integer, nullable=False, server_default="0"),
    Column("flagged", Boolean, nullable=False, server_default="false"),
    Column("risk", _DOUBLE, nullable=False, server_default="0"),
    Column("risk_v2", _DOUBLE, nullable=False, server_default="0"),
    Column("action", Text, nullable=False, server_default="allow"),
    Column("claims", Integer, nullable=False, server_default="0"),
    Column("verifiable", Integer, nullable=False, server_default="0"),
    Column("complete", Boolean, nullable=False, server_default="true"),
    Column("late", Boolean, nullable=False, server_default="false"),
    Column("details", JSONB, comment="citations, failures, labels, probability_reason"),
    Column("answered_at", DateTime(timezone=True)),
    _now("finalised_at"),
    _one_of("outcome", OUTCOMES),
    _one_of("origin", ORIGINS),
    *(_score(name) for name in ("faithfulness", "faithfulness_upper", "supported_probability", "risk", "risk_v2")),
    postgresql_partition_by="RANGE (day)",
)
Index("ix_evaluation_trace_id", evaluation.c.trace_id)
Index(
    "ix_evaluation_window",
    evaluation.c.finalised_at,
    postgresql_include=["app", "environment", "evaluator", "faithfulness", "hallucinated", "weight"],
)


def _claim_key() -> list[Column[Any]]:
    return [
        *_key_columns(),
        Column("run_id", Text, primary_key=True, server_default="online"),
        Column("evaluator_version", Text, primary_key=True),
        Column("claim_id", Text, primary_key=True),
    ]


claim: Final = Table(
    "claim",
    metadata,
    *_claim_key(),
    Column("text", Text, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("subtype", Text),
    Column("severity", Text, nullable=False),
    Column("verifiable", Boolean, nullable=False),
    Column("skip_reason", Text),
    Column("citations", JSONB),
    Column("premise", Text),
    _one_of("type", CLAIM_TYPES),
    CheckConstraint('start >= 0 AND "end" >= start', name="offsets"),
    postgresql_partition_by="RANGE (day)",
)

verdict: Final = Table(
    "verdict",
    metadata,
    *_claim_key(),
    Column("status", Text, nullable=False),
    Column("confidence", _DOUBLE, nullable=False),
    Column("supported_probability", _DOUBLE),
    Column("reason", Text, nullable=False, server_default=""),
    Column("decided_by", Text, nullable=False),
    _one_of("status", CLAIM_STATUSES),
    _score("confidence"),
    _score("supported_probability"),
    postgresql_partition_by="RANGE (day)",
)

evidence: Final = Table(
    "evidence",
    metadata,
    *_claim_key(),
    Column("position", SmallInteger, primary_key=True, autoincrement=False),
    Column("source_id", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("trust", _DOUBLE, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("score", _DOUBLE, nullable=False),
    _score("trust"),
    _score("score"),
    postgresql_partition_by="RANGE (day)",
)

judgement: Final = Table(
    "judgement",
    metadata,
    *_key_columns(),
    Column("run_id", Text, primary_key=True, server_default="online"),
    Column("evaluator_version", Text, primary_key=True),
    Column("criterion", Text, primary_key=True),
    Column("repeat", SmallInteger, primary_key=True, autoincrement=False),
    Column("score", _DOUBLE),
    Column("body", JSONB, nullable=False),
    Column("late", Boolean, nullable=False, server_default="false"),
    _now("created_at"),
    _score("score"),
    postgresql_partition_by="RANGE (day)",
)

feedback: Final = Table(
    "feedback",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("trace_id", Text, primary_key=True),
    Column("span_id", Text, primary_key=True, server_default=""),
    Column("user_hash", Text, primary_key=True, server_default=""),
    Column("kind", Text, primary_key=True, server_default="thumb"),
    Column("value", _DOUBLE, nullable=False, comment="-1 down, 1 up, or a score"),
    Column("comment", Text),
    Column("app", Text, nullable=False, server_default=""),
    _now("created_at"),
)

label: Final = Table(
    "label",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("evaluation_id", BigInteger, nullable=False, index=True),
    Column("claim_id", Text),
    Column("reviewer", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("note", Text),
    _now("created_at"),
)

run: Final = Table(
    "run",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("spec", JSONB, nullable=False),
    _now("started_at"),
    Column("finished_at", DateTime(timezone=True)),
)

evaluator: Final = Table(
    "evaluator",
    metadata,
    Column("version", Text, primary_key=True, comment="sha256 hex"),
    Column("name", Text, nullable=False),
    Column("spec", JSONB, nullable=False),
    _now("created_at"),
)

sampling: Final = Table(
    "sampling",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("app", Text, primary_key=True, comment="'*' is the default of the tenant"),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("rate", _DOUBLE, nullable=False),
    Column("mode", Text, nullable=False, server_default="trace"),
    _now("created_at"),
    _score("rate"),
    CheckConstraint("mode IN ('trace', 'session')", name="mode"),
)

total: Final = Table(
    "total",
    metadata,
    Column("metric", Text, primary_key=True),
    Column("tenant", Text, primary_key=True),
    Column("app", Text, primary_key=True),
    Column("environment", Text, primary_key=True),
    Column("model", Text, primary_key=True),
    Column("prompt_version", Text, primary_key=True),
    Column("evaluator", Text, primary_key=True),
    Column("origin", Text, primary_key=True),
    Column("key", Text, primary_key=True, comment="status, type, outcome or reason of the metric; '' when none"),
    Column("value", _DOUBLE, nullable=False),
    CheckConstraint("value = value AND value < 'Infinity' AND value > '-Infinity'", name="value"),
    # Every batch updates the same rows: with room in the page an update touches no index.
    postgresql_with={"fillfactor": "50"},
)

dead_letter: Final = Table(
    "dead_letter",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("entry_id", Text, nullable=False, server_default="", comment="stream entry, '' for an answer"),
    Column("evaluation_id", BigInteger),
    Column("trace_id", Text, nullable=False, server_default=""),
    Column("app", Text, nullable=False, server_default=""),
    Column("reason", Text, nullable=False),
    Column("detail", Text, nullable=False, server_default=""),
    Column("fields", JSONB, nullable=False, server_default=text("'{}'")),
    Column("payload", LargeBinary),
    Column("payload_sha256", Text, nullable=False, server_default=""),
    _now("created_at"),
    Column("resolved_at", DateTime(timezone=True)),
    Column("resolution", Text),
)
Index(
    "uq_dead_letter_entry",
    dead_letter.c.tenant,
    dead_letter.c.entry_id,
    unique=True,
    postgresql_where=text("entry_id <> ''"),
)

tombstone: Final = Table(
    "tombstone",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("trace_id", Text, primary_key=True),
    _now("created_at"),
    Column("receipt", JSONB, nullable=False),
)

audit: Final = Table(
    "audit",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    _now("at"),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False, server_default=""),
    Column("details", JSONB, nullable=False, server_default=text("'{}'")),
)
