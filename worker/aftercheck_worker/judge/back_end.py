"""From settings to the generator behind the judge.

`http(s)://...` is any OpenAI-compatible endpoint, `https://api.anthropic.com` (or `anthropic+http(s)://...`, for a
gateway that speaks it) Anthropic's Messages API, `file:///path` a local model ([gpu] extra).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

import msgspec

from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.models import lock
from aftercheck_worker.models.anthropic_messages import AnthropicMessages
from aftercheck_worker.models.base import Completion, Generator, ModelInfo
from aftercheck_worker.models.endpoint import Endpoint, probed
from aftercheck_worker.models.openai_compatible import OpenAICompatible
from aftercheck_worker.settings import Settings

ANTHROPIC_HOST: Final = "api.anthropic.com"
ANTHROPIC_PREFIX: Final = "anthropic+"


class Remote(Protocol):
    """A generator with connections to end."""

    @property
    def info(self) -> ModelInfo:
        """Identity."""
        ...

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """See `base.Generator.generate`."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class Probing:
    """Asks the endpoint once which structured-output mode it takes, at the first call; then steps aside.

    A probe that fails is the failure of that call, and the next call probes again.
    """

    def __init__(self, endpoint: Endpoint, back_end: Callable[[Endpoint], Remote] = OpenAICompatible) -> None:
        self._endpoint = endpoint
        self._back_end = back_end
        self._inner: Remote | None = None
        self._lock = asyncio.Lock()

    @property
    def info(self) -> ModelInfo:
        """Identity; its mode is `auto` until the endpoint has answered."""
        if self._inner is not None:
            return self._inner.info
        return ModelInfo(name=self._endpoint.model, revision="", parameters={"mode": "auto"})

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """See `base.Generator.generate`."""
        inner = await self._ready()
        return await inner.generate(system, user, schema=schema, max_tokens=max_tokens, seed=seed)

    async def close(self) -> None:
        """Close all connections."""
        if self._inner is not None:
            await self._inner.close()

    async def _ready(self) -> Remote:
        async with self._lock:
            if self._inner is None:
                self._inner = self._back_end(await probed(self._endpoint, self._back_end))
        return self._inner


def build(settings: Settings) -> Generator | None:
    """Return the generator that the settings name; None without a judge. Connects to nothing yet.

    Raises:
        ConfigurationError: the URL is none, or a local model cannot run here.
        ModelRefused: a local model is not in models.lock, is not what it says, or may carry code.
    """
    if settings.judge_url is None:
        return None
    back_end, url = _back_end(settings.judge_url)
    if back_end is None:
        return _local(settings, Path(unquote(urlsplit(url).path)))
    endpoint = Endpoint(
        url=url,
        model=settings.judge_model,
        key=settings.judge_key.get_secret_value() if settings.judge_key else "none",
        total=settings.judge_call_seconds,
        concurrency=settings.judge_concurrency,
    )
    if settings.judge_mode == "auto":
        return Probing(endpoint, back_end)
    return back_end(msgspec.structs.replace(endpoint, mode=settings.judge_mode))


def _back_end(url: str) -> tuple[Callable[[Endpoint], Remote] | None, str]:
    """The back end and its base URL; None for a local folder."""
    plain = url.removeprefix(ANTHROPIC_PREFIX)
    parts = urlsplit(plain)
    if parts.scheme == "file" and not parts.netloc and parts.path and plain == url:
        return None, url
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"AFTERCHECK_JUDGE_URL {url[:80]!r} is no judge's URL",
            why="it has to begin with http://, https://, anthropic+https:// or file:///path",
            fix="name the base URL, such as http://127.0.0.1:8000/v1, or the folder of a model",
        )
    if plain != url or parts.hostname == ANTHROPIC_HOST:
        return AnthropicMessages, plain.rstrip("/").removesuffix("/v1")
    return OpenAICompatible, plain


def _local(settings: Settings, folder: Path) -> Generator:
    # Imported here: torch costs seconds, and only this back end needs it.
    from aftercheck_worker.models.transformers_local import Limits, TransformersGenerator

    model = lock.read(settings.models_lock).find(folder.name)
    pinned = {name: file.sha256 for name, file in model.files.items()}
    mode = "json_schema" if settings.judge_mode == "auto" else settings.judge_mode
    limits = Limits(total=settings.judge_call_seconds, mode=mode, batch=min(settings.judge_concurrency, 8))
    return TransformersGenerator(folder, revision=model.revision, pinned=pinned, limits=limits)
