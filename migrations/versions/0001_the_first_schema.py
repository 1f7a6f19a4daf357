# pyright: reportUnknownArgumentType=false
"""The first schema.

Revision: 0001, after nothing.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

PARTITIONED = ("interaction", "evaluation", "claim", "verdict", "evidence", "judgement")


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), server_default="", nullable=False),
        sa.Column("details", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_table(
        "claim",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("evaluation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.Text(), server_default="online", nullable=False),
        sa.Column("evaluator_version", sa.Text(), nullable=False),
        sa.Column("claim_id", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("subtype", sa.Text(), nullable=True),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("verifiable", sa.Boolean(), nullable=False),
        sa.Column("skip_reason", sa.Text(), nullable=True),
        sa.Column("citations", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("premise", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "type IN ('fact', 'number', 'quote', 'causal', 'code', 'plan')", name=op.f("ck_claim_type")
        ),
        sa.CheckConstraint('start >= 0 AND "end" >= start', name=op.f("ck_claim_offsets")),
        sa.PrimaryKeyConstraint(
            "day", "evaluation_id", "run_id", "evaluator_version", "claim_id", name=op.f("pk_claim")
        ),
        postgresql_partition_by="RANGE (day)",
    )
    op.create_table(
        "dead_letter",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("entry_id", sa.Text(), server_default="", nullable=False, comment="stream entry, '' for an answer"),
        sa.Column("evaluation_id", sa.BigInteger(), nullable=True),
        sa.Column("trace_id", sa.Text(), server_default="", nullable=False),
        sa.Column("app", sa.Text(), server_default="", nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), server_default="", nullable=False),
        sa.Column("fields", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.Column("payload_sha256", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("resolution", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dead_letter")),
    )
    op.create_index(
        "uq_dead_letter_entry",
        "dead_letter",
        ["tenant", "entry_id"],
        unique=True,
        postgresql_where=sa.text("entry_id <> ''"),
    )
    op.create_table(
        "evaluation",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("evaluation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.Text(), server_default="online", nullable=False),
        sa.Column("evaluator_version", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("span_id", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), server_default="", nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("prompt_version", sa.Text(), server_default="", nullable=False),
        sa.Column("retriever_version", sa.Text(), server_default="", nullable=False),
        sa.Column("evaluator", sa.Text(), nullable=False),
        sa.Column("quality", sa.Text(), server_default="standard", nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("session_id", sa.Text(), server_default="", nullable=False),
        sa.Column("turn", sa.Integer(), server_default="0", nullable=False),
        sa.Column("call_index", sa.Integer(), server_default="1", nullable=False),
        sa.Column("context_tokens", sa.Integer(), server_default="0", nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("faithfulness", sa.Double(), nullable=True),
        sa.Column("faithfulness_upper", sa.Double(), nullable=True),
        sa.Column("supported_probability", sa.Double(), nullable=True),
        sa.Column("hallucinated", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("critical", sa.Integer(), server_default="0", nullable=False),
        sa.Column("flagged", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("risk", sa.Double(), server_default="0", nullable=False),
        sa.Column("risk_v2", sa.Double(), server_default="0", nullable=False),
        sa.Column("action", sa.Text(), server_default="allow", nullable=False),
        sa.Column("claims", sa.Integer(), server_default="0", nullable=False),
        sa.Column("verifiable", sa.Integer(), server_default="0", nullable=False),
        sa.Column("complete", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("late", sa.Boolean(), server_default="false", nullable=False),
        sa.Column(
            "details",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=True,
            comment="citations, failures, labels, probability_reason",
        ),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finalised_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "origin IN ('production', 'forced', 'check', 'replay', 'golden')", name=op.f("ck_evaluation_origin")
        ),
        sa.CheckConstraint(
            "outcome IN ('grounded', 'ungrounded', 'abstained', 'no_claims', 'not_assessable')",
            name=op.f("ck_evaluation_outcome"),
        ),
        sa.CheckConstraint(
            "faithfulness IS NULL OR (faithfulness >= 0 AND faithfulness <= 1)",
            name=op.f("ck_evaluation_faithfulness"),
        ),
        sa.CheckConstraint(
            "faithfulness_upper IS NULL OR (faithfulness_upper >= 0 AND faithfulness_upper <= 1)",
            name=op.f("ck_evaluation_faithfulness_upper"),
        ),
        sa.CheckConstraint("risk IS NULL OR (risk >= 0 AND risk <= 1)", name=op.f("ck_evaluation_risk")),
        sa.CheckConstraint("risk_v2 IS NULL OR (risk_v2 >= 0 AND risk_v2 <= 1)", name=op.f("ck_evaluation_risk_v2")),
        sa.CheckConstraint(
            "supported_probability IS NULL OR (supported_probability >= 0 AND supported_probability <= 1)",
            name=op.f("ck_evaluation_supported_probability"),
        ),
        sa.PrimaryKeyConstraint("day", "evaluation_id", "run_id", "evaluator_version", name=op.f("pk_evaluation")),
        postgresql_partition_by="RANGE (day)",
    )
    op.create_index("ix_evaluation_trace_id", "evaluation", ["trace_id"], unique=False)
    op.create_index(
        "ix_evaluation_window",
        "evaluation",
        ["finalised_at"],
        unique=False,
        postgresql_include=["app", "environment", "evaluator", "faithfulness", "hallucinated", "weight"],
    )
    op.create_table(
        "evaluator",
        sa.Column("version", sa.Text(), nullable=False, comment="sha256 hex"),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("version", name=op.f("pk_evaluator")),
    )
    op.create_table(
        "evidence",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("evaluation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.Text(), server_default="online", nullable=False),
        sa.Column("evaluator_version", sa.Text(), nullable=False),
        sa.Column("claim_id", sa.Text(), nullable=False),
        sa.Column("position", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("trust", sa.Double(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("end", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("score", sa.Double(), nullable=False),
        sa.CheckConstraint("score IS NULL OR (score >= 0 AND score <= 1)", name=op.f("ck_evidence_score")),
        sa.CheckConstraint("trust IS NULL OR (trust >= 0 AND trust <= 1)", name=op.f("ck_evidence_trust")),
        sa.PrimaryKeyConstraint(
            "day", "evaluation_id", "run_id", "evaluator_version", "claim_id", "position", name=op.f("pk_evidence")
        ),
        postgresql_partition_by="RANGE (day)",
    )
    op.create_table(
        "feedback",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("span_id", sa.Text(), server_default="", nullable=False),
        sa.Column("user_hash", sa.Text(), server_default="", nullable=False),
        sa.Column("kind", sa.Text(), server_default="thumb", nullable=False),
        sa.Column("value", sa.Double(), nullable=False, comment="-1 down, 1 up, or a score"),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("app", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "trace_id", "span_id", "user_hash", "kind", name=op.f("pk_feedback")),
    )
    op.create_table(
        "interaction",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("evaluation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "body", postgresql.JSONB(astext_type=sa.Text()), nullable=False, comment="aftercheck_schemas.Interaction"
        ),
        sa.PrimaryKeyConstraint("day", "evaluation_id", name=op.f("pk_interaction")),
        postgresql_partition_by="RANGE (day)",
    )
    op.create_table(
        "judgement",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("evaluation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.Text(), server_default="online", nullable=False),
        sa.Column("evaluator_version", sa.Text(), nullable=False),
        sa.Column("criterion", sa.Text(), nullable=False),
        sa.Column("repeat", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("body", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("late", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("score IS NULL OR (score >= 0 AND score <= 1)", name=op.f("ck_judgement_score")),
        sa.PrimaryKeyConstraint(
            "day", "evaluation_id", "run_id", "evaluator_version", "criterion", "repeat", name=op.f("pk_judgement")
        ),
        postgresql_partition_by="RANGE (day)",
    )
    op.create_table(
        "label",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("evaluation_id", sa.BigInteger(), nullable=False),
        sa.Column("claim_id", sa.Text(), nullable=True),
        sa.Column("reviewer", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_label")),
    )
    op.create_index(op.f("ix_label_evaluation_id"), "label", ["evaluation_id"], unique=False)
    op.create_table(
        "ledger",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("span_id", sa.Text(), nullable=False),
        sa.Column("evaluation_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("origin", sa.Text(), server_default="production", nullable=False),
        sa.Column("priority", sa.SmallInteger(), server_default="0", nullable=False, comment="1 goes to check.high"),
        sa.Column("weight", sa.Double(), server_default="1", nullable=False, comment="1 / sampling probability"),
        sa.Column("rate_version", sa.Integer(), server_default="0", nullable=False),
        sa.Column(
            "pairs", sa.Integer(), server_default="0", nullable=False, comment="estimated claim x passage pairs"
        ),
        sa.Column("attempts", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("solo", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("judge_deadline", sa.DateTime(timezone=True), nullable=True),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finalised_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "origin IN ('production', 'forced', 'check', 'replay', 'golden')", name=op.f("ck_ledger_origin")
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'checking', 'judging', 'scored', 'abstained', 'not_assessable', 'failed', 'dead_letter', 'expired', 'erased')",  # noqa: E501
            name=op.f("ck_ledger_state"),
        ),
        sa.CheckConstraint("weight > 0 AND weight < 'Infinity'", name=op.f("ck_ledger_weight")),
        sa.PrimaryKeyConstraint("tenant", "trace_id", "span_id", name=op.f("pk_ledger")),
        sa.UniqueConstraint("evaluation_id", name=op.f("uq_ledger_evaluation_id")),
    )
    op.create_index("ix_ledger_finalised_at", "ledger", ["finalised_at"], unique=False)
    op.create_index(
        "ix_ledger_open",
        "ledger",
        ["updated_at"],
        unique=False,
        postgresql_where=sa.text("state IN ('pending', 'checking', 'judging')"),
    )
    op.create_index("ix_ledger_trace_id", "ledger", ["trace_id"], unique=False)
    op.create_table(
        "run",
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run")),
    )
    op.create_table(
        "sampling",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False, comment="'*' is the default of the tenant"),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("rate", sa.Double(), nullable=False),
        sa.Column("mode", sa.Text(), server_default="trace", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("mode IN ('trace', 'session')", name=op.f("ck_sampling_mode")),
        sa.CheckConstraint("rate IS NULL OR (rate >= 0 AND rate <= 1)", name=op.f("ck_sampling_rate")),
        sa.PrimaryKeyConstraint("tenant", "app", "version", name=op.f("pk_sampling")),
    )
    op.create_table(
        "tombstone",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("trace_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("receipt", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "trace_id", name=op.f("pk_tombstone")),
    )
    op.create_table(
        "total",
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("app", sa.Text(), nullable=False),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("prompt_version", sa.Text(), nullable=False),
        sa.Column("evaluator", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column(
            "key", sa.Text(), nullable=False, comment="status, type, outcome or reason of the metric; '' when none"
        ),
        sa.Column("value", sa.Double(), nullable=False),
        sa.CheckConstraint(
            "value = value AND value < 'Infinity' AND value > '-Infinity'", name=op.f("ck_total_value")
        ),
        sa.PrimaryKeyConstraint(
            "metric",
            "tenant",
            "app",
            "environment",
            "model",
            "prompt_version",
            "evaluator",
            "origin",
            "key",
            name=op.f("pk_total"),
        ),
        postgresql_with={"fillfactor": "50"},
    )
    op.create_table(
        "verdict",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("evaluation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("run_id", sa.Text(), server_default="online", nullable=False),
        sa.Column("evaluator_version", sa.Text(), nullable=False),
        sa.Column("claim_id", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("supported_probability", sa.Double(), nullable=True),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "status IN ('supported', 'contradicted', 'not_found', 'unclear')", name=op.f("ck_verdict_status")
        ),
        sa.CheckConstraint(
            "confidence IS NULL OR (confidence >= 0 AND confidence <= 1)", name=op.f("ck_verdict_confidence")
        ),
        sa.CheckConstraint(
            "supported_probability IS NULL OR (supported_probability >= 0 AND supported_probability <= 1)",
            name=op.f("ck_verdict_supported_probability"),
        ),
        sa.PrimaryKeyConstraint(
            "day", "evaluation_id", "run_id", "evaluator_version", "claim_id", name=op.f("pk_verdict")
        ),
        postgresql_partition_by="RANGE (day)",
    )
    # The net: rows of a day without a partition of its own land here instead of failing.
    for table in PARTITIONED:
        op.execute(f"CREATE TABLE {table}_pdefault PARTITION OF {table} DEFAULT")


def downgrade() -> None:
    op.drop_table("verdict")
    op.drop_table("total")
    op.drop_table("tombstone")
    op.drop_table("sampling")
    op.drop_table("run")
    op.drop_index("ix_ledger_trace_id", table_name="ledger")
    op.drop_index(
        "ix_ledger_open", table_name="ledger", postgresql_where=sa.text("state IN ('pending', 'checking', 'judging')")
    )
    op.drop_index("ix_ledger_finalised_at", table_name="ledger")
    op.drop_table("ledger")
    op.drop_index(op.f("ix_label_evaluation_id"), table_name="label")
    op.drop_table("label")
    op.drop_table("judgement")
    op.drop_table("interaction")
    op.drop_table("feedback")
    op.drop_table("evidence")
    op.drop_table("evaluator")
    op.drop_index(
        "ix_evaluation_window",
        table_name="evaluation",
        postgresql_include=["app", "environment", "evaluator", "faithfulness", "hallucinated", "weight"],
    )
    op.drop_index("ix_evaluation_trace_id", table_name="evaluation")
    op.drop_table("evaluation")
    op.drop_index("uq_dead_letter_entry", table_name="dead_letter", postgresql_where=sa.text("entry_id <> ''"))
    op.drop_table("dead_letter")
    op.drop_table("claim")
    op.drop_table("audit")
