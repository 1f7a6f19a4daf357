"""The only file that knows traceloop-sdk (OpenLLMetry). Facts: notes on capture, section 2 (version 0.62.4)."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import sys
from typing import TYPE_CHECKING, Any

from aftercheck import _provider
from aftercheck._guard import describe, warn_once
from aftercheck.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opentelemetry.sdk.trace import SpanProcessor

    from aftercheck._settings import Settings

MODULES: dict[str, tuple[str, ...]] = {
    "AGNO": ("agno",),
    "ALEPHALPHA": ("aleph_alpha_client",),
    "ANTHROPIC": ("anthropic",),
    "BEDROCK": ("boto3",),
    "CHROMA": ("chromadb",),
    "COHERE": ("cohere",),
    "CREWAI": ("crewai",),
    "GOOGLE_GENERATIVEAI": ("google.generativeai", "google.genai"),
    "GROQ": ("groq",),
    "HAYSTACK": ("haystack",),
    "LANCEDB": ("lancedb",),
    "LANGCHAIN": ("langchain_core",),
    "LITELLM": ("litellm",),
    "LLAMA_INDEX": ("llama_index.core",),
    "MARQO": ("marqo",),
    "MCP": ("mcp",),
    "MILVUS": ("pymilvus",),
    "MISTRAL": ("mistralai",),
    "OLLAMA": ("ollama",),
    "OPENAI": ("openai",),
    "OPENAI_AGENTS": ("agents",),
    "PINECONE": ("pinecone",),
    "QDRANT": ("qdrant_client",),
    "REPLICATE": ("replicate",),
    "SAGEMAKER": ("sagemaker",),
    "TOGETHER": ("together",),
    "TRANSFORMERS": ("transformers",),
    "VERTEXAI": ("vertexai",),
    "VOYAGEAI": ("voyageai",),
    "WATSONX": ("ibm_watsonx_ai",),
    "WEAVIATE": ("weaviate",),
    "WRITER": ("writerai",),
}
"""Instrument -> modules whose presence in `sys.modules` says that the app uses the library.

`all` would import every installed library (12 s CPU, 290 MB measured), so detection looks at imported ones only.
"""

BLOCKED = ("REQUESTS", "URLLIB3", "REDIS", "PYMYSQL")
"""Not LLM calls; and our own thread talks to Redis."""

DEFAULT_ENDPOINT = "https://api.traceloop.com"


class NoUpload:
    """Image uploader that uploads nothing: the default one posts to api.traceloop.com on the app's thread."""

    async def aupload_base64_image(self, trace_id: str, span_id: str, image_name: str, base64_image: str) -> str:
        """Return a placeholder URL; the arguments are Traceloop's."""
        del trace_id, span_id, base64_image
        return f"aftercheck:image-not-stored/{image_name}"


def start(processor: SpanProcessor, settings: Settings, instruments: tuple[str, ...] | None) -> None:
    """Run `Traceloop.init` with our processor, silently, for the named or the imported libraries.

    Raises:
        ConfigurationError: an instrument's name is unknown, or Traceloop installed nothing.
    """
    os.environ.setdefault("TRACELOOP_TELEMETRY", "false")
    os.environ.setdefault("ANTHROPIC_OPEN_TELEMETRY", "false")  # else every Anthropic call makes a second span
    names = imported() if instruments is None else named(instruments)
    with contextlib.redirect_stdout(io.StringIO()):
        sdk: Any = importlib.import_module("traceloop.sdk")
        kinds: Any = importlib.import_module("traceloop.sdk.instruments").Instruments
        sdk.Traceloop.init(
            app_name=settings.app,
            processor=[processor],
            instruments={kinds[name] for name in names},
            block_instruments={kinds[name] for name in BLOCKED},
            image_uploader=NoUpload(),
            resource_attributes=_resource(settings),
            traceloop_sync_enabled=False,
        )
    _add_others(sdk)
    if instruments is None:
        _watch_imports(set(MODULES) - names)


def imported() -> set[str]:
    """Instruments of the libraries that the app has imported."""
    return {name for name, modules in MODULES.items() if any(module in sys.modules for module in modules)}


def named(words: Iterable[str]) -> set[str]:
    """Instruments by name, in any case, with `-` or `_`.

    Raises:
        ConfigurationError: a name is unknown.
    """
    names = {word.strip().upper().replace("-", "_") for word in words}
    unknown = sorted(names - set(MODULES))
    if unknown:
        raise ConfigurationError(
            f"instruments has the unknown name {unknown[0].lower()!r}; known: {', '.join(sorted(MODULES)).lower()}"
        )
    return names


def _resource(settings: Settings) -> dict[str, str]:
    return {"deployment.environment": settings.environment} if settings.environment else {}


def _add_others(sdk: Any) -> None:
    """Keep what the environment configures: Traceloop would send nothing there once a processor is given."""
    from opentelemetry import trace

    endpoint = os.environ.get("TRACELOOP_BASE_URL", "")
    key = os.environ.get("TRACELOOP_API_KEY", "")
    provider: Any = trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        raise ConfigurationError("Traceloop did not start (is TRACELOOP_TRACING_ENABLED=false set?); unset it")
    others = _provider.exporters_beside()
    if endpoint or key:
        with contextlib.redirect_stdout(io.StringIO()):
            others.append(
                sdk.Traceloop.get_default_span_processor(
                    api_endpoint=endpoint or DEFAULT_ENDPOINT, headers=_headers(key)
                )
            )
    for other in others:
        provider.add_span_processor(other)


def _headers(key: str) -> dict[str, str]:
    given = os.environ.get("TRACELOOP_HEADERS", "")
    if given:
        from opentelemetry.util.re import parse_env_headers

        return dict(parse_env_headers(given, liberal=True))
    return {"Authorization": f"Bearer {key}"} if key else {}


def _watch_imports(names: set[str]) -> None:
    """Instrument a library when the app imports it after `init`: else its calls would silently be missing."""
    try:
        wrapt: Any = importlib.import_module("wrapt")
    except ImportError:
        return
    for name in sorted(names):
        for module in MODULES[name]:
            wrapt.register_post_import_hook(functools.partial(_instrument, name), module)


def _instrument(name: str, module: object) -> None:
    del module
    try:
        tracing: Any = importlib.import_module("traceloop.sdk.tracing.tracing")
        kinds: Any = importlib.import_module("traceloop.sdk.instruments").Instruments
        with contextlib.redirect_stdout(io.StringIO()):
            tracing.init_instrumentations(
                True, NoUpload().aupload_base64_image, {kinds[name]}, {kinds[word] for word in BLOCKED}, True
            )
    except Exception as error:  # noqa: BLE001 - an import in the app must not fail because of us
        warn_once(f"{name.lower()} could not be traced ({describe(error)}); call aftercheck.init after importing it")
