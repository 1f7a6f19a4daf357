"""A real small model as the judge, over HTTP: `make test-llm`. It tests the plumbing; the model is no good judge.

AFTERCHECK_TEST_GGUF names the model file; the packages of the tier (xllamacpp) have to be installed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aftercheck_schemas import Claim, Interaction, Judgement, Passage
from aftercheck_worker import settings
from aftercheck_worker.evaluators import GROUNDING, Evaluator, resolve
from aftercheck_worker.judge import Judge, JudgePlan
from aftercheck_worker.judge.crosscheck import crosscheck
from aftercheck_worker.models.base import Pair as Scored
from aftercheck_worker.models.endpoint import Endpoint
from aftercheck_worker.models.openai_compatible import OpenAICompatible, probe
from aftercheck_worker.models.yes_no import YesNoScorer
from aftercheck_worker.stages.judging.prompts import neutralise
from aftercheck_worker.stages.judging.verdicts import fold
from aftercheck_worker.stages.verification import Item
from benchmarks import _attacks
from benchmarks._attacks import Pair
from tests.llm import fetch

pytestmark = [pytest.mark.llm, pytest.mark.timeout(7200)]
PAIRS = [pair for pair in _attacks.pairs() if pair.language == "en"][
    : int(os.environ.get("AFTERCHECK_TEST_PAIRS", "18"))
]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    """The model behind llama.cpp's own server."""
    model = Path(os.environ.get("AFTERCHECK_TEST_GGUF", ""))
    python = os.environ.get("AFTERCHECK_TEST_LLM_PYTHON", sys.executable)
    if not model.is_file():
        pytest.skip("AFTERCHECK_TEST_GGUF names no file: make test-llm")
    if python == sys.executable and importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: make test-llm")
    if fetch.digest(model) != fetch.SHA256:
        pytest.skip("AFTERCHECK_TEST_GGUF is not the released file")
    command = [python, str(Path(__file__).with_name("serve.py")), str(model)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        url = server.stdout.readline().decode().strip()
        yield Endpoint(url=url, model="qwen2.5-coder-1.5b", total=900, attempts=1, concurrency=1)
        server.stdin.close()


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return resolve(GROUNDING, settings.load({}))


def claims(pair: Pair) -> list[Claim]:
    """The true twin, then the false one."""
    return [
        Claim(id=f"c{number}", text=text, start=0, end=len(text))
        for number, text in enumerate((pair.true, pair.false), 1)
    ]


def interaction(pair: Pair) -> Interaction:
    passages = tuple(Passage(source_id=f"s{number}", text=text) for number, text in enumerate(pair.context, 1))
    return Interaction(
        trace_id="a" * 32,
        span_id="b" * 16,
        app="llm",
        question=pair.question,
        answer=f"{pair.true} {pair.false}",
        passages=passages,
    )


def judged(endpoint: Endpoint, pair: Pair) -> Judgement:
    async def once() -> Judgement:
        generator = OpenAICompatible(endpoint)
        try:
            asked = interaction(pair)
            return await Judge(generator).judge(asked, claims(pair), asked.passages, JudgePlan(triad=False))
        finally:
            await generator.close()

    return asyncio.run(once())


def test_json_verdicts_and_what_the_quote_and_cross_checks_make_of_them(
    endpoint: Endpoint, evaluator: Evaluator
) -> None:
    found = asyncio.run(probe(endpoint))
    assert found.mode == "json_schema"
    read = said = kept = wrong_before = wrong_after = 0
    for pair in PAIRS:
        judgement = judged(found, pair)
        asked = interaction(pair)
        verdicts = evaluator.verifier.verify([Item(interaction=asked, claims=tuple(claims(pair)))])[0].verdicts
        checked = crosscheck(evaluator.verifier, asked, claims(pair), judgement)
        final = fold(verdicts, judgement, checked).verdicts
        statuses = [claim.status for claim in judgement.claims]
        read += sum(status is not None for status in statuses)
        said += (statuses[0] == "supported") + (statuses[1] in ("contradicted", "not_found"))
        wrong_before += statuses[1] == "supported"
        wrong_after += final[1].status == "supported"
        alone = verdicts[1].status == "supported"
        assert not (final[1].status == "supported" and not alone), (
            f"{pair.id}: the judge made a false claim supported"
        )
        kept += final[0].status == "supported"
    asked_claims = 2 * len(PAIRS)
    print(  # noqa: T201 - the tier reports
        f"\nJSON: {read}/{asked_claims} claims read, {said}/{asked_claims} right,"
        f" false claims supported {wrong_before} by the judge, {wrong_after} after the checks,"
        f" true claims kept {kept}/{len(PAIRS)}"
    )
    assert read >= 0.9 * asked_claims
    assert kept >= 0.7 * len(PAIRS)


def test_yes_and_no_rank_true_above_false(endpoint: Endpoint) -> None:
    scorer = YesNoScorer(endpoint, neutralise)

    scores = scorer.score(
        [Scored(premise=" ".join(pair.context), claim=text) for pair in PAIRS for text in (pair.true, pair.false)]
    )

    true = [score.entailment for score in scores[::2]]
    false = [score.entailment for score in scores[1::2]]
    area = sum((t > f) + (t == f) / 2 for t in true for f in false) / (len(true) * len(false))
    right = sum(t >= 0.5 for t in true) + sum(f < 0.5 for f in false)
    print(f"\nyes/no: AUC {area:.3f}, accuracy {right / len(scores):.3f} of {len(scores)} claims")  # noqa: T201
    assert area >= 0.7
