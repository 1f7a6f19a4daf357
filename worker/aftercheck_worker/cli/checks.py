"""The checks of `aftercheck doctor`, each a function from a connection to findings (U14)."""

from __future__ import annotations

import platform
import time
import urllib.error
import urllib.request
from importlib import metadata
from typing import Final, Literal, cast

import msgspec
import psycopg
import redis
from packaging.version import Version
from psycopg.rows import TupleRow

from aftercheck_schemas.wire import bytes_key, stream_key
from aftercheck_worker import evaluators
from aftercheck_worker.errors import AftercheckError
from aftercheck_worker.exporter.queues import due_key
from aftercheck_worker.settings import Settings
from aftercheck_worker.storage import migrate

Status = Literal["ok", "warn", "fail"]

DEPENDENCY: Final = 69
CONFIGURATION: Final = 78
NEEDED: Final = {"celery": "5.7", "kombu": "5.7", "redis": "6.4", "psycopg": "3.2", "sqlalchemy": "2.1"}
MAX_SKEW_SECONDS: Final = 5.0
SLOW_MILLISECONDS: Final = 20.0
CONNECTIONS_PER_MACHINE: Final = 4
"""A worker, an intake, its reconciler, and an exporter or a command."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the doctor.

    Attributes:
        exit_code: sysexits code that a `fail` asks for, 0 otherwise.
    """

    check: str
    status: Status
    detail: str
    fix: str = ""
    exit_code: int = 0


def ok(check: str, detail: str) -> Finding:
    """All is well."""
    return Finding(check=check, status="ok", detail=detail)


def warn(check: str, detail: str, fix: str) -> Finding:
    """It works, but somebody should know."""
    return Finding(check=check, status="warn", detail=detail, fix=fix)


def fail(check: str, detail: str, fix: str, code: int) -> Finding:
    """It does not work."""
    return Finding(check=check, status="fail", detail=detail, fix=fix, exit_code=code)


def failed(check: str, error: AftercheckError) -> Finding:
    """Turn an error of ours into a finding."""
    detail = " ".join(part for part in (error.what, error.why and f"({error.why})") if part)
    return fail(check, detail, error.fix, error.exit_code)


def machine() -> list[Finding]:
    """Python and the libraries whose version matters."""
    found = [ok("python", platform.python_version())]
    for name, needed in NEEDED.items():
        try:
            have = metadata.version(name)
        except metadata.PackageNotFoundError:
            found.append(fail(name, "not installed", "pip install 'aftercheck[worker]'", CONFIGURATION))
            continue
        if Version(have) < Version(needed):
            found.append(fail(name, f"{have}, needs {needed}", f"pip install '{name}>={needed}'", CONFIGURATION))
        else:
            found.append(ok(name, have))
    return found


def configuration(settings: Settings) -> list[Finding]:
    """Settings that contradict one another, and the sampling mode."""
    found: list[Finding] = []
    limit, visible = settings.task_time_limit, settings.visibility_timeout
    detail = f"visibility timeout {visible} s, task time limit {limit} s"
    if visible > 2 * limit:
        found.append(ok("time limits", detail))
    else:
        fix = f"set AFTERCHECK_VISIBILITY_TIMEOUT above {2 * limit}"
        found.append(fail("time limits", f"{detail}: running tasks would be handed out again", fix, CONFIGURATION))
    rate = 1.0 if settings.dev else settings.sampling_rate
    if rate == 0:
        found.append(warn("sampling", "rate 0: nothing is evaluated", "aftercheck sampling set '*' 0.05"))
    else:
        found.append(ok("sampling", f"default rate {rate:g}{' (AFTERCHECK_DEV=1)' if settings.dev else ''}"))
    if settings.sampling_by == "trace":
        found.append(
            ok("sessions", "sampling by trace; for fatigue by session length set AFTERCHECK_SAMPLING_BY=session")
        )
    return found


def evaluator(settings: Settings) -> list[Finding]:
    """Whether the evaluator loads, and whether its verdicts may wake somebody."""
    try:
        found = evaluators.resolve(settings.evaluator, settings)
    except AftercheckError as error:
        return [failed("evaluator", error)]
    detail = f"{found.name}, version {found.version[:12]}, quality={found.quality}"
    if found.quality == "smoke":
        return [
            warn("evaluator", f"{detail}: a word-overlap baseline, kept out of alerts", "install a trained verifier")
        ]
    return [ok("evaluator", detail)]


def queue(client: redis.Redis, settings: Settings) -> list[Finding]:
    """Redis: reachable, fast, durable, never evicting, and of our time."""
    began = time.monotonic()
    seconds, micros = client.time()
    milliseconds = (time.monotonic() - began) * 1000
    skew = time.time() - (int(seconds) + int(micros) / 1e6)
    info = cast("dict[str, object]", client.info())
    name = "valkey" if "valkey_version" in info else "redis"
    version = str(info.get(f"{name}_version"))
    found = [ok("redis", f"{name} {version}")]
    if Version(str(info.get("redis_version"))) < Version("6.2"):
        found = [fail("redis", f"{version} has no XAUTOCLAIM", "use Redis 6.2 or newer, or Valkey", CONFIGURATION)]
    found.append(
        ok("redis latency", f"{milliseconds:.1f} ms")
        if milliseconds < SLOW_MILLISECONDS
        else warn("redis latency", f"{milliseconds:.0f} ms", "put Redis near the fleet")
    )
    found.append(
        ok("clock", f"{abs(skew):.2f} s from Redis")
        if abs(skew) < MAX_SKEW_SECONDS
        else fail(
            "clock", f"{skew:.1f} s from Redis: work would be repeated", "synchronise the clocks", CONFIGURATION
        )
    )
    return [*found, *_durability(info), *_room(client, settings)]


def _durability(info: dict[str, object]) -> list[Finding]:
    policy = str(info.get("maxmemory_policy", "unknown"))
    found: list[Finding] = []
    if policy == "noeviction":
        found.append(ok("eviction", policy))
    elif policy.startswith("allkeys"):
        fix = "redis-cli config set maxmemory-policy noeviction"
        found.append(fail("eviction", f"{policy} deletes queues and traces", fix, CONFIGURATION))
    else:
        found.append(warn("eviction", policy, "redis-cli config set maxmemory-policy noeviction"))
    if info.get("aof_enabled") == 1:
        found.append(ok("append-only file", "on"))
    else:
        fix = "redis-cli config set appendonly yes"
        found.append(warn("append-only file", "off: a restart of Redis loses what waits", fix))
    return found


def _room(client: redis.Redis, settings: Settings) -> list[Finding]:
    entries = client.xlen(stream_key(settings.tenant))
    size = int(cast("bytes | None", client.get(bytes_key(settings.tenant))) or 0)
    due = client.zcard(due_key(settings.tenant))
    detail = f"{entries} entries, {size / 2**20:.1f} MiB; {due} traces in assembly"
    if entries > 0.8 * settings.stream_max_entries or size > 0.8 * settings.stream_max_bytes:
        return [warn("stream", f"{detail}: over 80 % of its cap", "start more intakes, or lower the sampling rate")]
    return [ok("stream", detail)]


def store(connection: psycopg.Connection[TupleRow], url: str) -> list[Finding]:
    """Postgres: version, schema, free connections."""
    row = connection.execute(
        "SELECT current_setting('server_version'), current_setting('max_connections')::int,"
        " (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend')"
    ).fetchone()
    version, most, used = cast("tuple[str, int, int]", row)
    found = [ok("postgres", version)]
    current, head = migrate.current(url), migrate.head()
    if current == head:
        found.append(ok("schema", str(current)))
    else:
        found.append(fail("schema", f"{current or 'none'}, needs {head}", "aftercheck migrate", CONFIGURATION))
    free = most - used
    detail = f"{used} of {most} in use; one machine needs about {CONNECTIONS_PER_MACHINE}"
    if free < CONNECTIONS_PER_MACHINE:
        found.append(warn("connections", detail, "raise max_connections, or put PgBouncer before it"))
    else:
        found.append(ok("connections", f"{detail}, so there is room for {free // CONNECTIONS_PER_MACHINE}"))
    return found


def exporter(settings: Settings) -> list[Finding]:
    """Whether the exporter of this machine answers."""
    url = f"http://{settings.exporter_host}:{settings.exporter_port}/readyz"
    try:
        with urllib.request.urlopen(url, timeout=1):
            return [ok("exporter", f"{url} says ready")]
    except urllib.error.HTTPError as error:
        told = error.read(500).decode("utf-8", "replace").strip()
        return [warn("exporter", f"{url} says {error.code}: {told}", "see its reasons")]
    except (OSError, ValueError):
        return [warn("exporter", f"nothing answers at {url}", "aftercheck exporter")]
