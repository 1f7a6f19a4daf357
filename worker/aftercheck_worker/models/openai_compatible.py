"""Generator on any OpenAI-compatible endpoint: vLLM, SGLang, llama.cpp, Ollama, OpenAI. The only file with `openai`.

The client's own retries are off: see `endpoint`.
"""

from __future__ import annotations

import random
from typing import cast

import openai
from openai.types.chat import ChatCompletion, ChatCompletionMessageParam

from aftercheck_worker.models.base import Completion, GeneratorError, ModelInfo
from aftercheck_worker.models.endpoint import (
    LONGEST_SLEEP,
    MODES,
    Attempts,
    Endpoint,
    Mode,
    client,
    parameters,
    probed,
    status_error,
    temperature,
)

__all__ = ["LONGEST_SLEEP", "MODES", "Endpoint", "Mode", "OpenAICompatible", "probe"]


class OpenAICompatible:
    """Asks one endpoint. Use it inside one event loop; `close` ends its connections.

    Args:
        endpoint: see `Endpoint`.
        jitter: source of the back-off's randomness.
    """

    def __init__(self, endpoint: Endpoint, *, jitter: random.Random | None = None) -> None:
        self.endpoint = endpoint
        self._attempts = Attempts(endpoint, jitter)
        self._client = openai.AsyncOpenAI(
            base_url=endpoint.url, api_key=endpoint.key, max_retries=0, http_client=client(endpoint)
        )

    @property
    def info(self) -> ModelInfo:
        """Model name and everything about the call that can change a reply."""
        return ModelInfo(
            name=self.endpoint.model,
            revision="",
            parameters=parameters(self.endpoint),
        )

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """See `base.Generator.generate`. Retries 429, 5xx and broken connections with full jitter."""
        messages: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": system},
            {"role": "user", "content": user},
        ]
        return await self._attempts.run(lambda: self._once(messages, schema, max_tokens, seed))

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _once(
        self, messages: list[ChatCompletionMessageParam], schema: dict[str, object] | None, max_tokens: int, seed: int
    ) -> Completion:
        try:
            reply = await self._client.chat.completions.create(
                model=self.endpoint.model,
                messages=messages,
                max_tokens=max_tokens if self.endpoint.temperature else openai.omit,
                # Models that think by themselves refuse a temperature, and name their limit differently.
                max_completion_tokens=openai.omit if self.endpoint.temperature else max_tokens,
                temperature=temperature(seed) if self.endpoint.temperature else openai.omit,
                seed=seed,
                extra_body=_response_format(self.endpoint.mode, schema),
            )
        except openai.APIStatusError as error:
            raise status_error(error.status_code, error.response.headers) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__
            if isinstance(cause, GeneratorError):
                raise cause from None
            raise GeneratorError("unavailable", type(cause or error).__name__) from None
        except (openai.OpenAIError, ValueError) as error:
            raise GeneratorError("refused", f"unreadable reply ({type(error).__name__})") from None
        return _completion(reply)


async def probe(endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with the strictest structured-output mode that it accepts, see `endpoint.probed`."""
    return await probed(endpoint, OpenAICompatible)


def _response_format(mode: Mode, schema: dict[str, object] | None) -> dict[str, object]:
    if schema is None or mode == "plain":
        return {}
    if mode == "json_object":
        return {"response_format": {"type": "json_object"}}
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    }


def _completion(reply: ChatCompletion) -> Completion:
    # A server may send anything that is JSON, so the declared types are checked before use.
    choices = cast("list[object] | None", getattr(reply, "choices", None))
    if not isinstance(choices, list) or not choices:
        raise GeneratorError("refused", "reply without choices")
    message = getattr(choices[0], "message", None)
    content = getattr(message, "content", None)
    usage = cast("object", getattr(reply, "usage", None))
    return Completion(
        text=content if isinstance(content, str) else "",
        cut=getattr(choices[0], "finish_reason", None) == "length",
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
    )


def _count(usage: object, name: str) -> int:
    value = getattr(usage, name, 0)
    return value if isinstance(value, int) and value > 0 else 0
