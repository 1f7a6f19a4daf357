"""The local generator on a tiny random model: loading, chat template, schema-held replies, batching are real."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from aftercheck_worker.errors import ConfigurationError, ModelRefused
from aftercheck_worker.models import transformers_local
from aftercheck_worker.models.base import Completion, Generator, GeneratorError
from aftercheck_worker.models.transformers_local import Limits, TransformersGenerator
from aftercheck_worker.stages.judging.prompts import CRITERIA
from aftercheck_worker.stages.judging.schemas import SCHEMAS
from tests.unit.models import tiny_causal

ENUM: dict[str, object] = {
    "type": "object",
    "properties": {"status": {"type": "string", "enum": ["supported", "unclear"]}, "score": {"enum": [0, 1, 2, 3]}},
    "required": ["status", "score"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("torch", "transformers", "llguidance"):
        pytest.importorskip(name, reason=f"the [gpu] extra is not installed: no {name}")
    return tiny_causal.save(tmp_path_factory.mktemp("models") / "tiny")


def replies(
    model: TransformersGenerator, asked: Sequence[tuple[str, dict[str, object] | None, int, int]]
) -> list[Completion]:
    """Ask (user, schema, max_tokens, seed) at the same time."""

    async def all_at_once() -> list[Completion]:
        try:
            return await asyncio.gather(
                *(model.generate("Judge.", user, schema=s, max_tokens=n, seed=seed) for user, s, n, seed in asked)
            )
        finally:
            await model.close()

    return asyncio.run(all_at_once())


def test_it_is_a_generator_and_says_what_it_is(folder: Path) -> None:
    model = TransformersGenerator(folder, revision="r1")

    assert isinstance(model, Generator)
    assert (model.info.name, model.info.revision, len(model.info.sha256)) == ("tiny", "r1", 64)
    assert {"mode", "dtype", "template", "torch", "transformers"} <= set(model.info.parameters)


def test_a_random_model_is_held_to_the_schema(folder: Path) -> None:
    found = replies(TransformersGenerator(folder), [("claim", ENUM, 200, 0), ("other", ENUM, 200, 0)])

    for reply in found:
        read = cast("dict[str, object]", json.loads(reply.text))
        assert read["status"] in ("supported", "unclear")
        assert read["score"] in (0, 1, 2, 3)
        assert not reply.cut
        assert reply.prompt_tokens > len("claim")


def test_without_the_schema_it_writes_what_it_likes(folder: Path) -> None:
    (free,) = replies(TransformersGenerator(folder), [("claim", None, 20, 0)])
    (plain,) = replies(TransformersGenerator(folder, limits=Limits(mode="plain")), [("claim", ENUM, 20, 0)])

    assert free.text == plain.text
    with pytest.raises(ValueError, match="Expecting"):
        json.loads(free.text)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_every_schema_of_the_judge_can_be_held(folder: Path, criterion: str) -> None:
    schema = next(schema for name, schema in SCHEMAS.items() if name == criterion)

    (reply,) = replies(TransformersGenerator(folder), [("claim", schema, 30, 0)])

    assert reply.text.lstrip().startswith("{")
    assert next(iter(cast("dict[str, object]", schema["properties"]))) in reply.text


def test_a_batch_gives_what_one_by_one_gives(folder: Path) -> None:
    asked = [(f"claim number {n} " * (n + 1), ENUM, 200, 0) for n in range(5)]

    together = replies(TransformersGenerator(folder, limits=Limits(batch=5)), asked)
    apart = [replies(TransformersGenerator(folder, limits=Limits(batch=1)), [one])[0] for one in asked]

    assert together == apart


def test_calls_are_batched_by_seed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    run = TransformersGenerator._run

    def counted(self: TransformersGenerator, batch: Sequence[transformers_local._Waiting]) -> list[Completion]:
        sizes.append(len(batch))
        return run(self, batch)

    monkeypatch.setattr(TransformersGenerator, "_run", counted)

    replies(TransformersGenerator(folder, limits=Limits(batch=3)), [("c", ENUM, 60, n % 2) for n in range(8)])

    assert sorted(sizes) == [1, 1, 3, 3]


def test_each_reply_has_its_own_limit(folder: Path) -> None:
    short, long = replies(TransformersGenerator(folder), [("c", None, 3, 0), ("c", None, 9, 0)])

    assert (short.cut, short.completion_tokens, long.completion_tokens) == (True, 3, 9)


def test_other_seeds_are_other_samples_and_the_same_seed_the_same(folder: Path) -> None:
    first = replies(TransformersGenerator(folder, limits=Limits(batch=1)), [("c", None, 40, 1)])
    again = replies(TransformersGenerator(folder, limits=Limits(batch=1)), [("c", None, 40, 1)])
    other = replies(TransformersGenerator(folder, limits=Limits(batch=1)), [("c", None, 40, 2)])

    assert first == again
    assert first != other


@pytest.mark.req("F20")
def test_the_deadline_ends_a_call(folder: Path) -> None:
    with pytest.raises(GeneratorError) as caught:
        replies(TransformersGenerator(folder, limits=Limits(total=0.001)), [("c", None, 400, 0)])

    assert caught.value.reason == "deadline"


def test_a_batch_that_does_not_fit_is_halved(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    run = TransformersGenerator._run

    def tight(self: TransformersGenerator, batch: Sequence[transformers_local._Waiting]) -> list[Completion]:
        if len(batch) > 1:
            raise torch.OutOfMemoryError
        return run(self, batch)

    monkeypatch.setattr(TransformersGenerator, "_run", tight)

    assert len(replies(TransformersGenerator(folder), [("c", ENUM, 60, 0)] * 4)) == 4


def test_a_model_that_fails_costs_its_calls_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: TransformersGenerator, batch: Sequence[transformers_local._Waiting]) -> list[Completion]:
        raise RuntimeError("judged text in a message")

    monkeypatch.setattr(TransformersGenerator, "_run", broken)
    with pytest.raises(GeneratorError) as caught:
        replies(TransformersGenerator(folder), [("c", ENUM, 60, 0)])

    assert str(caught.value) == "unavailable: RuntimeError"


def test_a_model_without_a_chat_template_is_asked_in_plain_words(folder: Path, tmp_path: Path) -> None:
    bare = tiny_causal.save(tmp_path / "bare", template=False)

    (reply,) = replies(TransformersGenerator(bare), [("claim", ENUM, 200, 0)])

    assert json.loads(reply.text)["status"] in ("supported", "unclear")


@pytest.mark.req("S29")
def test_a_folder_with_code_is_refused_before_anything_is_loaded(folder: Path, tmp_path: Path) -> None:
    made = tiny_causal.save(tmp_path / "bad")
    (made / "modeling_tiny.py").write_text("raise SystemExit")

    with pytest.raises(ModelRefused, match="may carry code"):
        TransformersGenerator(made)


def test_without_the_extra_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "llguidance", None)

    with pytest.raises(ConfigurationError, match=r"aftercheck\[gpu\]"):
        TransformersGenerator(folder)
