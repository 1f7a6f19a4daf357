"""All settings of the producer, each with its environment variable; read once, in `init`."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aftercheck.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aftercheck_schemas.trace import Chunk
    from aftercheck_schemas.vocabulary import Origin

DEFAULT_REDIS_URL = "redis://127.0.0.1:6379/0"
MIB = 1024 * 1024
_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off", "no_content")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one process.

    Attributes:
        app: name of the app, 1..200 characters (argument, else OTEL_SERVICE_NAME).
        redis_url: AFTERCHECK_REDIS_URL, else REDIS_URL. `redis://`, `rediss://` or `unix://`.
        environment: AFTERCHECK_ENVIRONMENT, else deployment.environment of OTEL_RESOURCE_ATTRIBUTES.
        tenant: AFTERCHECK_TENANT; names the stream.
        max_buffer_bytes: AFTERCHECK_MAX_BUFFER_BYTES, at least 1 MiB.
        max_buffer_spans: AFTERCHECK_MAX_BUFFER_SPANS.
        max_text_chars: AFTERCHECK_MAX_TEXT_CHARS; a longer text is cut and flagged.
        max_payload_bytes: largest JSON of one entry; intake refuses more than 8 MiB.
        max_stream_entries, max_stream_bytes: admission cap (AFTERCHECK_MAX_STREAM_ENTRIES, _BYTES).
        tick_s: seconds between two sends. hold_s: a trace with open spans is sent in parts this often.
        shutdown_timeout_s: longest delay of the process exit (P3).
        redaction_key: AFTERCHECK_REDACTION_KEY; apps that share it write equal placeholders.
        capture_content: False when the app asked for no text (S06).
        dev: AFTERCHECK_DEV=1: short tick and one line on stderr per trace.
        origin: `replay` for `aftercheck push`.
    """

    app: str
    redis_url: str = field(default=DEFAULT_REDIS_URL, repr=False)
    environment: str = ""
    tenant: str = "default"
    max_buffer_bytes: int = 32 * MIB
    max_buffer_spans: int = 20_000
    max_text_chars: int = 256 * 1024
    max_payload_bytes: int = 4 * MIB
    max_stream_entries: int = 200_000
    max_stream_bytes: int = 512 * MIB
    tick_s: float = 0.3
    hold_s: float = 2.0
    shutdown_timeout_s: float = 2.0
    redaction_key: bytes = field(default=b"", repr=False)
    capture_content: bool = True
    dev: bool = False
    origin: Origin = "production"
    before_send: Callable[[Chunk], Chunk | None] | None = None

    def __post_init__(self) -> None:
        _check_name(self.app)
        parts = urlsplit(self.redis_url)
        if parts.scheme not in ("redis", "rediss", "unix"):
            raise ConfigurationError(
                f"Redis URL starts with {parts.scheme or 'nothing'}://, so nothing can be sent; "
                "set AFTERCHECK_REDIS_URL=redis://HOST:6379/0"
            )
        if self.max_buffer_bytes < MIB:
            raise ConfigurationError(
                f"AFTERCHECK_MAX_BUFFER_BYTES is {self.max_buffer_bytes}, too small for a trace; use 1048576 or more"
            )


def _check_name(app: str) -> None:
    if not app or len(app) > 200 or not app.isprintable():
        raise ConfigurationError(
            "the app has no usable name, so its traces could not be told apart; "
            'call aftercheck.init("my-app") or set OTEL_SERVICE_NAME (1 to 200 printable characters)'
        )


def load(
    app: str | None,
    *,
    redis_url: str | None = None,
    environment: str | None = None,
    max_buffer_bytes: int | None = None,
    capture_content: bool | None = None,
    before_send: Callable[[Chunk], Chunk | None] | None = None,
    origin: Origin = "production",
    env: Mapping[str, str] = os.environ,
) -> Settings:
    """Merge arguments over the environment.

    Raises:
        ConfigurationError: a value cannot be used.
    """
    from aftercheck_schemas.redaction import default_key  # at init, so that the import stays light (R1)

    name = env.get("OTEL_SERVICE_NAME") or app or ""
    dev = is_true(env.get("AFTERCHECK_DEV"))
    key = env.get("AFTERCHECK_REDACTION_KEY", "").encode() or default_key(app or name)
    return Settings(
        app=app or name,
        redis_url=redis_url or env.get("AFTERCHECK_REDIS_URL") or env.get("REDIS_URL") or DEFAULT_REDIS_URL,
        environment=environment or env.get("AFTERCHECK_ENVIRONMENT") or _resource_environment(env),
        tenant=env.get("AFTERCHECK_TENANT") or "default",
        max_buffer_bytes=max_buffer_bytes or _number(env, "AFTERCHECK_MAX_BUFFER_BYTES", 32 * MIB),
        max_buffer_spans=_number(env, "AFTERCHECK_MAX_BUFFER_SPANS", 20_000),
        max_text_chars=_number(env, "AFTERCHECK_MAX_TEXT_CHARS", 256 * 1024),
        max_stream_entries=_number(env, "AFTERCHECK_MAX_STREAM_ENTRIES", 200_000),
        max_stream_bytes=_number(env, "AFTERCHECK_MAX_STREAM_BYTES", 512 * MIB),
        tick_s=0.1 if dev else 0.3,
        redaction_key=key,
        capture_content=content_wanted(env) if capture_content is None else capture_content,
        dev=dev,
        origin=origin,
        before_send=before_send,
    )


def is_true(word: str | None) -> bool:
    """Read a switch from the environment."""
    return (word or "").strip().lower() in _TRUE


def content_wanted(env: Mapping[str, str] = os.environ) -> bool:
    """False when TRACELOOP_TRACE_CONTENT or the OTel GenAI switch says explicitly that no text is captured."""
    names = ("TRACELOOP_TRACE_CONTENT", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
    return not any(env.get(name, "").strip().lower() in _FALSE for name in names)


def _resource_environment(env: Mapping[str, str]) -> str:
    for pair in env.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        name, _, value = pair.partition("=")
        if name.strip() in ("deployment.environment", "deployment.environment.name"):
            return value.strip()
    return ""


def _number(env: Mapping[str, str], name: str, default: int) -> int:
    word = env.get(name, "").strip()
    if not word:
        return default
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        raise ConfigurationError(
            f"{name} is {word[:40]!r}, not a whole number above 0; unset it or use e.g. {default}"
        )
    return int(word)
