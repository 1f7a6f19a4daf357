"""Settings of the worker side, read from the environment (R45, architecture.md "Settings").

Names are `AFTERCHECK_<FIELD>`; `REDIS_URL` and `DATABASE_URL` are honoured as they are. A secret may come from a
file: `DATABASE_URL_FILE`, `REDIS_URL_FILE`, `AFTERCHECK_JUDGE_KEY_FILE` and so on.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from aftercheck_worker.errors import ConfigurationError

PREFIX = "AFTERCHECK_"
PRODUCER_NAMES = frozenset(
    PREFIX + name
    for name in (
        "API_TOKEN",
        "API_URL",
        "APP",
        "REDIS_URL",
        "MAX_BUFFER_BYTES",
        "MAX_BUFFER_ITEMS",
        "SHUTDOWN_TIMEOUT",
        "REDACTION_KEY",
        "REDACTION",
        "CAPTURE_CONTENT",
        "STRICT",
        "TRACE_CONTENT",
        "MAX_TEXT_BYTES",
        "ENABLED",
        "DATA",
        "TRAIN_DIR",
    )
)
"""Variables that other parts of the distribution read: known here, so that they are not called misspelt."""


def _names(field: str, *plain: str) -> AliasChoices:
    return AliasChoices(*plain, PREFIX + field)


class Settings(BaseSettings):
    """Everything that can be set. Durations are seconds, sizes bytes, rates 0..1."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True, populate_by_name=True)

    database_url: SecretStr | None = Field(None, validation_alias=_names("DATABASE_URL", "DATABASE_URL"))
    redis_url: SecretStr | None = Field(None, validation_alias=_names("REDIS_URL", "REDIS_URL"))
    broker_url: SecretStr | None = None
    home: Path = Field(
        Path(".aftercheck"),
        description="Folder of the embedded services' data, logs and sockets; kept between runs.",
    )
    tenant: str = "default"
    dev: bool = Field(False, description="Evaluate everything and say so.")

    sampling_rate: float = Field(
        0.05, ge=0, le=1, description="Rate for apps without a row in the sampling table (R4)."
    )
    sampling_by: Literal["trace", "session"] = "trace"
    stream_max_entries: int = Field(200_000, gt=0)
    stream_max_bytes: int = Field(512 * 1024 * 1024, gt=0)
    cold_bytes: int = Field(512 * 1024 * 1024, ge=0, description="Byte cap of the unsampled traces kept in Redis.")
    cold_hours: float = Field(24, ge=0)
    quiet_seconds: float = Field(3, gt=0, description="Quiet time after the root of an SDK trace.")
    quiet_seconds_otlp: float = Field(15, gt=0)
    idle_seconds: float = Field(30, gt=0, description="Idle time of a trace without a local root.")
    max_wait_seconds: float = Field(600, gt=0)
    lease_seconds: float = Field(60, gt=0)
    max_payload_bytes: int = Field(8 * 1024 * 1024, gt=0)

    batch_size: int = Field(32, ge=1, le=32)
    batch_pairs: int = Field(20_000, ge=1, description="Estimated claim x passage pairs of one Celery batch.")
    answer_pairs: int = Field(200_000, ge=1, description="Cap for one answer; above it: failed(too_large).")
    task_time_limit: int = Field(300, gt=0)
    visibility_timeout: int = Field(900, gt=0)
    max_attempts: int = Field(3, ge=1)
    max_memory_mb: int = Field(8192, ge=256, description="Resident memory at which a pool child is replaced.")
    patience_seconds: float = Field(10, gt=0, description="How long a task waits for Postgres before it requeues.")
    heartbeat_file: Path | None = Field(None, description="Liveness file of `worker`; below the home by default.")
    role: Literal["check", "judge"] = Field(
        "check", description="What the pool child of a Celery worker loads; set by `worker` itself."
    )
    progress_file: Path | None = Field(None, description="Mark of a child's progress; set by `worker` itself.")
    watchdog_seconds: float = Field(
        0, ge=0, description="A child that stands still for so long is ended; 0 = task time limit + 60."
    )
    stuck_seconds: float = Field(120, gt=0, description="Age at which the reconciler re-sends an unfinished row.")
    reconcile_seconds: float = Field(5, gt=0)
    expire_seconds: float = Field(24 * 3600, gt=0)
    late_seconds: float = Field(900, gt=0, description="Answers older than this stay out of alert series (R53).")
    retention_days: int = Field(30, ge=1, description="Days that text is kept (S36); counts stay.")
    verdict_days: int = Field(365, ge=1, description="Days that scores and ledger rows are kept.")

    evaluator: str = Field("default", description="default, lexical-v1, ..., or package.module:function.")
    inference_spin: bool = Field(False, description="Inference threads of workers spin; see api_spin for `serve`.")
    models: Path | None = Field(None, description="Folder of fetched models; below the home by default.")
    models_lock: Path | None = Field(None, description="Your own pins, beside the shipped models.lock.")
    verifier_model: str = Field("", description="Installed model that the evaluator `model-v1` asks.")
    action_from: Literal["v1", "v2"] = "v1"
    judge_url: str | None = Field(None, description="Base URL of the judge, or file:///path; unset = no judge.")
    judge_model: str = Field("default", min_length=1, description="Name of the model at that endpoint.")
    judge_key: SecretStr | None = Field(None, description="Key of the endpoint; a local one needs none.")
    judge_mode: Literal["auto", "json_schema", "json_object", "plain"] = Field(
        "auto", description="Structured output; auto asks the endpoint at the first answer."
    )
    judge_share: Literal["band", "all"] = Field(
        "band", description="band: the judge decides uncertain claims; all: every claim of every sampled answer."
    )
    judge_audit: float = Field(
        0.05, ge=0, le=1, description="Share of answers judged to compare, whatever the verifier is sure of."
    )
    judge_canaries: float = Field(0.005, ge=0, le=1, description="Share of judged answers that bring a canary along.")
    judge_repeats: int = Field(3, ge=1, le=9, description="Judgements per claim in band, audit and golden sets.")
    judge_triad: bool = Field(True, description="Also score context relevance and answer relevance (R21).")
    judge_seconds: float = Field(
        60, gt=0, description="Deadline of one answer; then the verifier's verdict is final."
    )
    judge_call_seconds: float = Field(45, gt=0, description="Total deadline of one call, its retries included.")
    judge_concurrency: int = Field(64, ge=1, description="Calls in flight per process and endpoint.")
    judge_tokens_per_day: int = Field(
        50_000_000, ge=0, description="Tokens that the fleet may spend per day (UTC); above it the verifier decides."
    )
    judge_dollars_per_day: float = Field(0, ge=0, description="The same in US dollars; 0 = no cap.")
    judge_prompt_price: float = Field(0, ge=0, description="US dollars per million prompt tokens.")
    judge_completion_price: float = Field(0, ge=0, description="US dollars per million completion tokens.")

    api_host: str = Field("127.0.0.1", description="Address of `serve`; beyond loopback only with tokens.")
    api_port: int = Field(8080, ge=0, le=65535)
    api_tokens_file: Path | None = Field(
        None, description="Token file of `serve`; tokens.json of the home by default."
    )
    api_max_checks: int = Field(
        64, ge=1, description="Checks that may run or wait, if they can be done in time; above it: 503."
    )
    api_check_seconds: float = Field(10, gt=0, description="Deadline of one POST /monitor/check, waiting included.")
    api_spin: bool = Field(
        True,
        description="Inference threads of `serve` spin within a check: faster, dearer beside busy neighbours.",
    )
    api_rate_per_minute: int = Field(6000, ge=1, description="Requests per token and minute; above it: 429.")
    api_browser_origins: str = Field("", description="Origins, comma-separated, whose pages may send feedback.")
    api_memory: Path | None = Field(
        None, description="Folder or JSONL file that `memory_refs` of a check name entries of; unset = none resolves."
    )
    redaction_key: SecretStr | None = Field(
        None,
        description="The apps' key, for placeholders that `serve` writes. Unset: from each app's name.",
    )
    api_trace_link: str = Field(
        "", description="Other trace viewers: URL or NAME=URL, several by blanks, with {trace_id}, {span_id}, {app}."
    )

    exporter_host: str = "127.0.0.1"
    exporter_port: int = Field(9464, ge=0, le=65535)
    exporter_refresh_seconds: float = Field(5, gt=0)
    exporter_stall_seconds: float = Field(
        60, gt=0, description="Waiting work without progress for so long: /livez and /readyz say no."
    )
    label_values: int = Field(100, ge=1, description="Distinct values per metric label; the rest is 'other'.")
    log_format: Literal["json", "text"] = "json"

    @property
    def models_home(self) -> Path:
        """Folder of fetched models."""
        return self.models or self.home / "models"

    @property
    def embedded(self) -> bool:
        """True when a service has to be started by us because its URL is not set."""
        return self.database_url is None or self.redis_url is None


@lru_cache(maxsize=1)
def current() -> Settings:
    """Settings of this process. Tests call `current.cache_clear()`.

    Raises:
        ConfigurationError: a value is out of range, or an `AFTERCHECK_` variable is unknown.
    """
    return load(os.environ)


def load(environ: Mapping[str, str]) -> Settings:
    """Read the settings from `environ`, with `*_FILE` indirection.

    Raises:
        ConfigurationError: as for `current`.
    """
    values = dict(environ)
    for name, path in environ.items():
        if name.endswith("_URL_FILE") or (name.startswith(PREFIX) and name.endswith("_KEY_FILE")):
            values[name.removesuffix("_FILE")] = _read_secret(name, path)
    _refuse_unknown(values)
    try:
        return Settings.model_validate(_fields(values))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigurationError(
            f"Setting {PREFIX}{field.upper().removeprefix(PREFIX)} is not usable",
            why=f"{first['msg']}, got {str(first.get('input'))[:80]!r}",
            fix="see `aftercheck config show` for the allowed values",
        ) from None


def _fields(values: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for field in Settings.model_fields:
        plain = field.upper() if field in ("database_url", "redis_url") else None
        for name in (plain, PREFIX + field.upper()):
            if name and values.get(name):
                found[field] = values[name]
                break
    return found


def _read_secret(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise ConfigurationError(
            f"{name} names a file that cannot be read",
            why=str(error),
            fix="check the path and its permissions",
        ) from None


def _refuse_unknown(values: Mapping[str, str]) -> None:
    known = {PREFIX + field.upper() for field in Settings.model_fields} | PRODUCER_NAMES
    for name in values:
        if not name.startswith(PREFIX) or name in known or name.removesuffix("_FILE") in known:
            continue
        near = difflib.get_close_matches(name.removeprefix(PREFIX), [n.removeprefix(PREFIX) for n in known], n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else "remove it, or see `aftercheck config show`"
        raise ConfigurationError(f"Unknown setting {name}", why="nothing reads it", fix=hint)
