"""`init`, `flush` and `stats`: the one client of the process."""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from aftercheck import _provider, _settings
from aftercheck._buffer import SpanBuffer
from aftercheck._guard import describe, never_raises, warn_once
from aftercheck._processor import Processor, size_of
from aftercheck._shipper import Shipper
from aftercheck._stats import FlushResult, Stats
from aftercheck.errors import AftercheckError, ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aftercheck._buffer import Feedback
    from aftercheck._settings import Settings
    from aftercheck_schemas.trace import Chunk
    from aftercheck_schemas.vocabulary import Origin


class _Client(NamedTuple):
    settings: Settings
    buffer: SpanBuffer
    shipper: Shipper


_lock = threading.Lock()
_client: _Client | None = None
_hooked = False


def init(
    app_name: str | None = None,
    *,
    redis_url: str | None = None,
    environment: str | None = None,
    instruments: Iterable[str] | None = None,
    before_send: Callable[[Chunk], Chunk | None] | None = None,
    max_buffer_bytes: int | None = None,
    capture_content: bool | None = None,
    strict: bool = False,
    _origin: Origin = "production",
) -> None:
    """Start to send this process's LLM traces to aftercheck. Call it once, early; it returns at once.

    With `aftercheck[traceloop]` installed it starts OpenLLMetry for the LLM libraries that the app has imported or
    imports later. Where a TracerProvider or Traceloop is set up already it attaches to that. Other exporters
    (TRACELOOP_BASE_URL, TRACELOOP_API_KEY, OTEL_EXPORTER_OTLP_ENDPOINT) go on beside it.

    Args:
        app_name: name of the app; default OTEL_SERVICE_NAME.
        redis_url: where traces go; default AFTERCHECK_REDIS_URL, then REDIS_URL, then redis://127.0.0.1:6379/0.
        environment: e.g. `production`; default AFTERCHECK_ENVIRONMENT, then deployment.environment.
        instruments: names of OpenLLMetry instruments (`openai`, `langchain`, ...) instead of detection.
        before_send: last look at a chunk after redaction, in our thread; return it (changed) or None to drop it.
        max_buffer_bytes: bound of the memory for waiting spans; default 32 MiB.
        capture_content: False sends no text at all; default follows TRACELOOP_TRACE_CONTENT.
        strict: raise instead of warning and staying off; for tests and start-up checks.

    Raises:
        AftercheckError: only with `strict=True`.
    """
    try:
        settings = _settings.load(
            app_name,
            redis_url=redis_url,
            environment=environment,
            max_buffer_bytes=max_buffer_bytes,
            capture_content=capture_content,
            before_send=before_send,
            origin=_origin,
        )
        with _lock:
            _start(settings, None if instruments is None else tuple(instruments))
    except ConfigurationError as error:
        if strict:
            raise
        warn_once(f"aftercheck is off: {error}")
    except Exception as error:
        if strict:
            raise AftercheckError(f"init failed: {describe(error)}") from error
        warn_once(f"aftercheck is off: init failed ({describe(error)}); the app is not affected")


def _start(settings: Settings, instruments: tuple[str, ...] | None) -> None:
    global _client, _hooked  # noqa: PLW0603 - one client per process
    if _settings.is_true(os.environ.get("OTEL_SDK_DISABLED")):
        warn_once("aftercheck is off because OTEL_SDK_DISABLED is true")
        return
    if _client is not None:
        if _client.settings != settings:
            warn_once(
                "aftercheck.init was called again with other settings; the first call stays in force. "
                "Call it once per process"
            )
        return
    buffer = SpanBuffer(settings.max_buffer_bytes, settings.max_buffer_spans)
    shipper = Shipper(settings, buffer)
    _provider.attach(Processor(buffer, shipper), settings, instruments)
    _client = _Client(settings, buffer, shipper)
    if not _hooked:
        _hooked = True
        os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
        atexit.register(_at_exit)  # registered last, so it runs before OpenTelemetry's and Traceloop's handlers


@never_raises(FlushResult())
def flush(timeout: float = 5.0) -> FlushResult:
    """Send what waits and wait for it; for scripts, serverless handlers and worker-exit hooks.

    Args:
        timeout: seconds; a dead Redis is noticed within about one.
    """
    return FlushResult() if _client is None else _client.shipper.report(timeout)


@never_raises(Stats())
def stats() -> Stats:
    """Counters of this process; all zero before `init`."""
    return Stats() if _client is None else _client.buffer.stats()


def put_feedback(feedback: Feedback) -> bool:
    """Hand a feedback to the client's buffer; False when there is none or it is full."""
    if _client is None:
        warn_once("aftercheck.feedback was called before aftercheck.init; nothing was sent")
        return False
    kept = _client.buffer.put(feedback, 512 + size_of(feedback.payload))
    if kept and _client.shipper.asleep:
        _client.shipper.start()
    return kept


def redaction_key() -> bytes:
    """Key of the client's placeholders and hashes, empty before `init`."""
    return b"" if _client is None else _client.settings.redaction_key


def reset() -> None:
    """Forget the client, for tests; its processor stays on the provider and drops what it sees."""
    global _client  # noqa: PLW0603
    if _client is not None:
        _client.shipper.shutdown()
        _client = None


def _at_exit() -> None:
    if _client is not None:
        _client.shipper.shutdown()


def _before_fork() -> None:
    if _client is not None:
        _client.shipper.before_fork()


def _after_fork() -> None:
    if _client is not None:
        _client.shipper.after_fork_in_parent()


def _in_child() -> None:
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    if _client is not None:
        _client.shipper.after_fork_in_child()
