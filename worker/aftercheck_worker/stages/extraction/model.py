"""Which model answered, with which parameters, on how many tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aftercheck_worker.stages.extraction.decoding import loads
from aftercheck_worker.stages.extraction.shape import as_count, first_text, is_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aftercheck_schemas import Json, SpanRecord

_MODEL: Final = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.response.model_name",
    "llm.model_name",
    "llm.request.model_name",
    "langfuse.observation.model.name",
    "ai.response.model",
    "ai.model.id",
)
_PROVIDER: Final = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system", "ai.model.provider")
_TOKENS: Final = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.usage.prompt_tokens",
    "llm.token_count.prompt",
    "ai.usage.promptTokens",
    "ai.usage.inputTokens",
)
_PREFIXES: Final = ("gen_ai.request.", "ai.settings.")
_NAMES: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "topP": "top_p",
    "top_k": "top_k",
    "topK": "top_k",
    "max_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxTokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
    "frequency_penalty": "frequency_penalty",
    "frequencyPenalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "presencePenalty": "presence_penalty",
    "seed": "seed",
}
_BODIES: Final = ("llm.invocation_parameters", "langfuse.observation.model.parameters")


def model_of(spans: Sequence[SpanRecord]) -> str:
    """The model that answered as the provider names it, else as the app asked for it; "" when unknown."""
    found = next((text for span in spans if (text := first_text(span.attributes, _MODEL))), "")
    if not found:
        bodies = (loads(span.attributes.get(key)) for span in spans for key in _BODIES)
        found = next((text for body in bodies if is_dict(body) and (text := first_text(body, ("model",)))), "")
    return found[:200]


def provider_of(spans: Sequence[SpanRecord]) -> str:
    """The provider in lower case, "" when unknown."""
    return next((text for span in spans if (text := first_text(span.attributes, _PROVIDER))), "").lower()[:100]


def tokens_of(spans: Sequence[SpanRecord]) -> int:
    """Input tokens as the provider counted them, 0 when unknown."""
    for span in spans:
        for key in _TOKENS:
            if found := as_count(span.attributes.get(key)):
                return found
        usage = loads(span.attributes.get("langfuse.observation.usage_details"))
        if is_dict(usage):
            for key in ("input", "prompt_tokens", "input_tokens"):
                if found := as_count(usage.get(key)):
                    return found
    return 0


def parameters_of(span: SpanRecord) -> dict[str, Json]:
    """Sampling parameters under their common names; numbers only."""
    found: dict[str, Json] = {}
    for key, value in span.attributes.items():
        if key.startswith(_PREFIXES):
            _put(found, key.rpartition(".")[2], value)
    for key in _BODIES:
        body = loads(span.attributes.get(key))
        if is_dict(body):
            for name, value in body.items():
                _put(found, name, value)
    return found


def _put(found: dict[str, Json], key: str, value: Json) -> None:
    name = _NAMES.get(key)
    if name is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if value == value and abs(value) < 1e15:
        found.setdefault(name, value)
