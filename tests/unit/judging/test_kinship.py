"""Families and sizes from names; what a name does not say is not guessed (R22)."""

from __future__ import annotations

import pytest

from aftercheck_worker.stages.judging.kinship import NOT_LARGER, SAME_FAMILY, family, labels, size

pytestmark = pytest.mark.req("R22")


@pytest.mark.parametrize(
    ("name", "expected", "billions"),
    [
        ("gpt-4o-mini-2024-07-18", "gpt", None),
        ("openai/o3", "gpt", None),
        ("claude-sonnet-4-5", "claude", None),
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct", "qwen", 1.5),
        ("meta-llama/Llama-3.1-70B-Instruct", "llama", 70),
        ("mistralai/Mixtral-8x7B-v0.1", "mistral", 56),
        ("DeepSeek-R1-Distill-Qwen-7B", "qwen", 7),
        ("smollm2-360m", None, 0.36),
        ("qwen3_8b_q4", "qwen", 8),
        ("phi-4", "phi", None),
        ("graphite-2b", None, 2),
        ("default", None, None),
        ("", None, None),
    ],
)
def test_what_a_name_says(name: str, expected: str | None, billions: float | None) -> None:
    assert (family(name), size(name)) == (expected, billions)


@pytest.mark.parametrize(
    ("judge", "judged", "expected"),
    [
        ("Qwen3-32B", "Qwen2.5-7B", (SAME_FAMILY,)),
        ("Qwen2.5-7B", "Llama-3.1-8B", (NOT_LARGER,)),
        ("Qwen2.5-7B", "Qwen3-8B", (SAME_FAMILY, NOT_LARGER)),
        ("Llama-3.3-70B", "Qwen2.5-7B", ()),
        ("gpt-4o", "gpt-4o", (SAME_FAMILY, NOT_LARGER)),
        ("default", "", ()),
        ("", "", ()),
    ],
)
def test_labels(judge: str, judged: str, expected: tuple[str, ...]) -> None:
    assert labels(judge, judged) == expected
