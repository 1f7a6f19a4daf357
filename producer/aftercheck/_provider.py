"""Where our span processor is hooked in: an existing provider, Traceloop, or a provider of our own."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, cast

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from aftercheck._guard import describe, warn_once
from aftercheck.errors import ConfigurationError

if TYPE_CHECKING:
    from types import ModuleType

    from opentelemetry.sdk.trace import SpanProcessor

    from aftercheck._settings import Settings

SHORTEST_VALUE_LIMIT = 64 * 1024
_LIMITS = ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT")
_INSTRUMENTATIONS = (
    "traceloop.sdk",
    "openinference.instrumentation",
    "langfuse",
    "logfire",
    "pydantic_ai",
    "opentelemetry.instrumentation.openai",
    "opentelemetry.instrumentation.openai_v2",
    "opentelemetry.instrumentation.anthropic",
    "opentelemetry.instrumentation.langchain",
    "opentelemetry.instrumentation.genai",
)


def attach(processor: SpanProcessor, settings: Settings, instruments: tuple[str, ...] | None) -> None:
    """Make `processor` see the app's spans.

    Raises:
        ConfigurationError: the app's tracer provider is not OpenTelemetry's SDK.
    """
    warn_of_environment()
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider):
        if traceloop_installed():
            _with_traceloop(processor, settings, instruments)
        else:
            _with_own_provider(processor, settings)
    elif not hasattr(provider, "add_span_processor"):
        raise ConfigurationError(
            f"the app's tracer provider is {type(provider).__module__}.{type(provider).__name__}, which takes no "
            "span processors; use OpenTelemetry's SDK provider or call aftercheck.init before it is set"
        )
    else:
        _with_existing(cast("TracerProvider", provider), processor, settings, instruments)
    warn_of_sampler(trace.get_tracer_provider())


def traceloop_installed() -> bool:
    """Whether traceloop-sdk can be imported, without importing it."""
    try:
        return importlib.util.find_spec("traceloop.sdk") is not None
    except (ImportError, ValueError):
        return False


def _with_traceloop(processor: SpanProcessor, settings: Settings, instruments: tuple[str, ...] | None) -> None:
    _adapter().start(processor, settings, instruments)


def _with_existing(
    provider: TracerProvider, processor: SpanProcessor, settings: Settings, instruments: tuple[str, ...] | None
) -> None:
    running = hasattr(getattr(sys.modules.get("traceloop.sdk.tracing.tracing"), "TracerWrapper", None), "instance")
    if instruments is not None and not running and traceloop_installed():
        _with_traceloop(processor, settings, instruments)  # adds to the existing provider
        return
    provider.add_span_processor(processor)
    if not running and not any(name in sys.modules for name in _INSTRUMENTATIONS):
        warn_once(
            "aftercheck is attached to the app's TracerProvider, but nothing seems to trace LLM calls; install "
            "aftercheck[traceloop] and name libraries, e.g. aftercheck.init(..., instruments=['openai'])"
        )


def _with_own_provider(processor: SpanProcessor, settings: Settings) -> None:
    from opentelemetry.sdk.resources import Resource

    provider = TracerProvider(resource=Resource.create({"service.name": settings.app}))
    provider.add_span_processor(processor)
    for other in exporters_beside():
        provider.add_span_processor(other)
    trace.set_tracer_provider(provider)
    warn_once(
        "traceloop-sdk is not installed, so LLM calls are traced only if the app does it itself; "
        "pip install 'aftercheck[traceloop]'"
    )


def _adapter() -> ModuleType:
    return importlib.import_module("aftercheck._traceloop")


def exporters_beside() -> list[SpanProcessor]:
    """Processors for an OTLP exporter that the environment configures; ours does not replace it."""
    named = os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    endpoint = os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if named == "none" or not (endpoint or named == "otlp"):
        return []
    protocol = (
        os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
        or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or "http/protobuf"
    )
    kind = "grpc" if protocol == "grpc" else "http"
    try:
        module = importlib.import_module(f"opentelemetry.exporter.otlp.proto.{kind}.trace_exporter")
        export = importlib.import_module("opentelemetry.sdk.trace.export")
        return [cast("SpanProcessor", export.BatchSpanProcessor(module.OTLPSpanExporter()))]
    except Exception as error:  # noqa: BLE001 - a broken exporter of theirs must not stop ours
        warn_once(
            f"the OTLP exporter of the environment could not start ({describe(error)}); "
            f"pip install opentelemetry-exporter-otlp-proto-{kind}"
        )
        return []


def warn_of_environment() -> None:
    """Say it when the environment makes traces useless for checking."""
    for name in _LIMITS:
        word = os.environ.get(name, "").strip()
        if word.isdigit() and int(word) < SHORTEST_VALUE_LIMIT:
            warn_once(
                f"{name}={word} cuts prompts in the middle of their JSON, so such answers cannot be checked; "
                f"unset it or use {SHORTEST_VALUE_LIMIT} or more"
            )
    if os.environ.get("TRACELOOP_TRACE_CONTENT", "").strip().lower() in ("false", "0", "no"):
        warn_once("TRACELOOP_TRACE_CONTENT=false, so no text is captured and no answer can be checked; unset it")


def warn_of_sampler(provider: object) -> None:
    """Say it when the app samples before us: what it leaves out never reaches the workers."""
    sampler = getattr(provider, "sampler", None)
    root = getattr(sampler, "_root", sampler)
    rate = getattr(root, "rate", None)
    if isinstance(rate, (int, float)) and rate < 1:
        warn_once(
            f"the tracer provider samples {rate:.0%} of the traces, the others never reach aftercheck; "
            "use ALWAYS_ON and let the workers sample (aftercheck sampling set)"
        )
