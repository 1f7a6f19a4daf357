"""Generator on a local causal model: `transformers`, batched, with replies held to their JSON schema ([gpu] extra).

Only safetensors are loaded, never remote code (`safe_folder`). Concurrent calls wait a moment for one another and
run as one batch; a batch that does not fit into memory is halved. llguidance masks the tokens that would leave the
schema, so even a model that cannot follow instructions writes JSON of the right shape. The only file with torch's
and transformers' untyped calls.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingImports=false, reportUntypedBaseClass=false
from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.models import safe_folder
from aftercheck_worker.models.base import Completion, GeneratorError, ModelInfo
from aftercheck_worker.models.endpoint import Mode, temperature

WAIT: Final = 0.01
"""Seconds that the first call of a batch waits for others."""
NEVER: Final = float("-inf")
COMPACT: Final = {"whitespace_flexible": False}
"""One way to write white space: a model that is lost would otherwise write nothing else until its limit."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How to run.

    Attributes:
        batch: calls of one batch.
        total: seconds from the call to the reply, waiting for the batch before it included.
        mode: `json_schema` masks tokens, `plain` does not; `json_object` is `plain` here.
        device: `auto` takes the first GPU, otherwise the CPU.
    """

    batch: int = 8
    total: float = 120.0
    mode: Mode = "json_schema"
    device: str = "auto"


class _Waiting(msgspec.Struct, kw_only=True):
    """A call that waits for its batch."""

    prompt: str
    schema: str
    max_tokens: int
    seed: int
    reply: asyncio.Future[Completion]


class TransformersGenerator:
    """Runs one model in this process. Use it inside one event loop.

    Args:
        folder: see `safe_folder.checked`.
        revision: of the release, for `evaluator_version`.
        pinned: sha256 by file name from `models.lock`.
        limits: see `Limits`.

    Raises:
        ModelRefused: the folder may carry code or is not the released one.
        ConfigurationError: torch, transformers or llguidance is not installed, or the tokenizer is a slow one.
    """

    def __init__(
        self,
        folder: Path,
        *,
        revision: str = "",
        pinned: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or Limits()
        digest = safe_folder.checked(folder, pinned)
        try:
            import llguidance
            import llguidance.hf
            import torch
            import transformers
        except ImportError as error:
            raise ConfigurationError(
                "A local judge needs torch, transformers and llguidance",
                why=f"{error.name} is not installed",
                fix="pip install 'aftercheck[gpu]'",
            ) from None
        local: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
        self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder, padding_side="left", **local)
        self._model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            folder, use_safetensors=True, dtype="auto", **local
        )
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token_id = self._tokenizer.eos_token_id
        self._device = _device(self._limits.device)
        self._model.to(self._device).eval()
        self._torch: Any = torch
        self._matchers: Any = llguidance
        self._vocabulary: Any = llguidance.hf.from_tokenizer(self._tokenizer, n_vocab=self._model.config.vocab_size)
        template = str(self._tokenizer.chat_template or "")
        self._info = ModelInfo(
            name=folder.name,
            revision=revision,
            sha256=digest,
            parameters={
                "mode": self._limits.mode,
                "temperature": "0|0.4",
                "dtype": str(self._model.dtype),
                "device": self._device.partition(":")[0],
                "template": hashlib.sha256(template.encode()).hexdigest()[:16],
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "llguidance": llguidance.__version__,
            },
        )
        self._waiting: list[_Waiting] = []
        self._worker: asyncio.Task[None] | None = None

    @property
    def info(self) -> ModelInfo:
        """Folder name, revision, hash of all files, and versions of what runs it."""
        return self._info

    async def generate(
        self, system: str, user: str, *, schema: dict[str, object] | None, max_tokens: int, seed: int = 0
    ) -> Completion:
        """See `base.Generator.generate`."""
        reply: asyncio.Future[Completion] = asyncio.get_running_loop().create_future()
        held = schema is not None and self._limits.mode == "json_schema"
        self._waiting.append(
            _Waiting(
                prompt=self._prompt(system, user),
                schema=json.dumps(schema) if held else "",
                max_tokens=max_tokens,
                seed=seed,
                reply=reply,
            )
        )
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._drain())
        try:
            async with asyncio.timeout(self._limits.total):
                return await reply
        except TimeoutError:
            raise GeneratorError("deadline", f"no reply in {self._limits.total:g} s") from None

    async def close(self) -> None:
        """Wait for the batch that runs; calls that wait behind it get no reply."""
        for waiting in self._waiting:
            waiting.reply.cancel()
        self._waiting.clear()
        if self._worker is not None:
            await self._worker

    async def _drain(self) -> None:
        """Run batch after batch until nobody waits; calls of one batch share their seed."""
        await asyncio.sleep(WAIT)
        while self._waiting:
            seed = self._waiting[0].seed
            batch = [one for one in self._waiting if one.seed == seed][: self._limits.batch]
            self._waiting = [one for one in self._waiting if one not in batch]
            wanted = [one for one in batch if not one.reply.done()]
            if wanted:
                await self._answer(wanted)

    async def _answer(self, batch: Sequence[_Waiting]) -> None:
        try:
            found = await asyncio.to_thread(self._run, batch)
        except self._torch.OutOfMemoryError:
            self._torch.cuda.empty_cache()
            if len(batch) > 1:
                await self._answer(batch[: len(batch) // 2])
                await self._answer(batch[len(batch) // 2 :])
                return
            _fail(batch, GeneratorError("unavailable", "the prompt does not fit into memory"))
        except Exception as error:  # noqa: BLE001 - whatever a model raises costs its calls, not the worker
            _fail(batch, GeneratorError("unavailable", type(error).__name__))
        else:
            for one, completion in zip(batch, found, strict=True):
                if not one.reply.done():
                    one.reply.set_result(completion)

    def _run(self, batch: Sequence[_Waiting]) -> list[Completion]:
        """Write the replies of one batch. Runs in a thread; blocks it."""
        torch = self._torch
        inputs = self._tokenizer(
            [one.prompt for one in batch], return_tensors="pt", padding=True, add_special_tokens=False
        )
        inputs = inputs.to(self._device)
        width = inputs["input_ids"].shape[1]
        warm = temperature(batch[0].seed)
        sampling: dict[str, Any] = (
            {"do_sample": True, "temperature": warm, "top_p": 1.0} if warm else {"do_sample": False}
        )
        torch.manual_seed(batch[0].seed)
        with torch.inference_mode():
            rows = self._model.generate(
                **inputs,
                **sampling,
                max_new_tokens=max(one.max_tokens for one in batch),
                logits_processor=[_Held(self._constraints(batch), width, self._tokenizer.eos_token_id)],
                pad_token_id=self._tokenizer.pad_token_id,
            )
        lengths: list[int] = inputs["attention_mask"].sum(dim=1).tolist()
        return [self._completion(one, row[width:], size) for one, row, size in zip(batch, rows, lengths, strict=True)]

    def _constraints(self, batch: Sequence[_Waiting]) -> list[Any]:
        """A matcher per call, None for one without a schema."""
        matcher, made = self._matchers.LLMatcher, []
        for one in batch:
            grammar = matcher.grammar_from_json_schema(one.schema, overrides=COMPACT) if one.schema else None
            made.append(matcher(self._vocabulary, grammar) if grammar is not None else None)
        return made

    def _completion(self, one: _Waiting, row: Any, prompt: int) -> Completion:
        """The reply up to its end or to its own limit, which may be below that of the batch."""
        tokens: list[int] = row.tolist()
        ends = self._model.generation_config.eos_token_id
        stops = set(ends if isinstance(ends, list) else [ends, self._tokenizer.eos_token_id])
        length = next((place for place, token in enumerate(tokens) if token in stops), len(tokens))
        cut = length >= len(tokens) or length > one.max_tokens
        kept = tokens[: min(length, one.max_tokens)]
        return Completion(
            text=self._tokenizer.decode(kept, skip_special_tokens=True),
            cut=cut,
            prompt_tokens=prompt,
            completion_tokens=len(kept),
        )

    def _prompt(self, system: str, user: str) -> str:
        """The chat template's words; a model without one gets both messages as plain text."""
        if not self._tokenizer.chat_template:
            return f"{system}\n\n{user}\n\n"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return str(self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))


class _Held:
    """A logits processor: of each row, only the tokens that its schema allows next.

    Args:
        matchers: one per row, None for a free one.
        width: tokens of the prompt.
        end: the token after a whole document.
    """

    def __init__(self, matchers: Sequence[Any], width: int, end: int) -> None:
        self._matchers = matchers
        self._width = width
        self._end = end

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        for place, matcher in enumerate(self._matchers):
            if matcher is None:
                continue
            if input_ids.shape[1] > self._width and not matcher.is_stopped():
                matcher.consume_token(int(input_ids[place, -1]))
            if matcher.is_stopped():
                scores[place] = NEVER
                scores[place, self._end] = 0.0
                continue
            packed = torch.frombuffer(bytearray(matcher.compute_bitmask()), dtype=torch.uint8)
            bits = (packed[:, None] >> torch.arange(8, dtype=torch.uint8)) & 1
            allowed = bits.flatten()[: scores.shape[1]].bool().to(scores.device)
            scores[place, : allowed.shape[0]].masked_fill_(~allowed, NEVER)
            scores[place, allowed.shape[0] :] = NEVER
        return scores


def _device(asked: str) -> str:
    import torch

    return ("cuda" if torch.cuda.is_available() else "cpu") if asked == "auto" else asked


def _fail(batch: Sequence[_Waiting], error: GeneratorError) -> None:
    for one in batch:
        if not one.reply.done():
            one.reply.set_exception(error)
