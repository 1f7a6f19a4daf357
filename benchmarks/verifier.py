"""Speed, memory and size of the default verifier: `python -m benchmarks.verifier`.

Pairs are windows of up to 90 words and claims of 6 to 25, as retrieval cuts them. The peer runs in an interpreter
with sentence-transformers and torch, named by BENCH_TORCH_PYTHON; without it its ratio is left out. Everything runs
on the same cores in turn, each at its best of two rounds.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import msgspec
from packaging.requirements import Requirement

from aftercheck_schemas import Interaction, Passage
from aftercheck_worker import evaluators, pipeline, settings
from aftercheck_worker.models import registry
from aftercheck_worker.models.base import Pair
from aftercheck_worker.models.onnx import OUTPUTS, OnnxPairScorer, _inputs
from aftercheck_worker.models.packing import DEFAULT_MAX_TOKENS, padded_ratio, plan
from aftercheck_worker.text.segments import segment_b

SEED = 7
PAIRS = 384
ANSWERS = 16
CLAIMS, PASSAGES, WORDS = 5, 10, 240
"""An answer of the bar; 240 words of this text are about 250 word pieces."""
GRID = ((5, 25), (10, 50), (25, 125), (50, 250), (100, 500), (200, 1000))
"""(claims, passages of 60 words) of the cost plot."""
PLOT = Path(__file__).parent / "results" / "verifier_cost.svg"
EXTRAS = ("worker", "embedded")
_TEXT = (
    "the quarterly revenue of the retail segment rose by four percent while operating costs stayed flat because"
    " energy prices fell and two warehouses closed in spring the board expects similar results next year after"
    " opening a new depot near the harbour where ferries carry parcels every morning despite storms and striking"
    " pilots"
)
_WORDS = _TEXT.split()


def run() -> dict[str, float]:
    """Measure.

    Returns:
        `verifier.pairs_per_s`; `verifier.pairs_ratio_vs_sentence_transformers` against fp32 `CrossEncoder.predict`;
        `verifier.padded_ratio`, padded over real tokens; `verifier.ort_share`, our throughput over that of
        onnxruntime alone on the same rows, tokenised and batched beforehand; `verifier.answers_per_s` and
        `verifier.rss_mb` (peak of a process that does nothing else); `verifier.install_mb`, all files of a default
        installation; `verifier.cost_200x1000_s` and `verifier.cost_exponent`, the slope of log time over
        log (claims x passages): 1 is linear.
    """
    return {**_pairs(), **_answers_apart(), "verifier.install_mb": _installed() / 1e6, **_cost()}


def _sentence(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=words)).capitalize() + "."


def _text(rng: random.Random, words: int) -> str:
    return " ".join(_sentence(rng, 15) for _ in range(max(1, words // 15)))


def pairs(count: int = PAIRS) -> list[Pair]:
    """Distinct pairs of mixed length."""
    rng = random.Random(SEED)
    return [
        Pair(
            premise=_text(rng, rng.randint(30, 90)), claim=_sentence(rng, rng.randint(6, 25)), question="What is new?"
        )
        for _ in range(count)
    ]


def _best(action: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(2):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return min(times)


def _pairs() -> dict[str, float]:
    scorer = OnnxPairScorer(registry.SHIPPED / evaluators.ENGLISH)
    given = pairs()
    scorer.score(given[:32])
    encodings = scorer.encode(given)
    lengths = [len(encoding.ids) for encoding in encodings]
    batches = plan(lengths, max_tokens=DEFAULT_MAX_TOKENS)
    inputs = [_inputs([encodings[place] for place in batch]) for batch in batches]
    raw = _best(lambda: [scorer._session.run(OUTPUTS, one) for one in inputs])  # noqa: SLF001 - the yardstick itself
    ours = _best(lambda: scorer.score(given))
    found = {
        "verifier.pairs_per_s": len(given) / ours,
        "verifier.tokens_per_pair": sum(lengths) / len(lengths),
        "verifier.padded_ratio": padded_ratio(lengths, batches),
        "verifier.ort_share": raw / ours,
    }
    peer = _peer(given)
    if peer is not None:
        found["verifier.sentence_transformers_pairs_per_s"] = peer
        found["verifier.pairs_ratio_vs_sentence_transformers"] = len(given) / ours / peer
    return found


def _peer(given: list[Pair]) -> float | None:
    python = os.environ.get("BENCH_TORCH_PYTHON")
    if not python:
        print("BENCH_TORCH_PYTHON is not set: no comparison with sentence-transformers", file=sys.stderr)
        return None
    content = {
        "tokenizer": str(registry.SHIPPED / evaluators.ENGLISH / "tokenizer.json"),
        "pairs": [(pair.premise, segment_b(pair.claim, pair.question, pair.previous)) for pair in given],
    }
    script = Path(__file__).with_name("_cross_encoder.py")
    threads = str(len(os.sched_getaffinity(0)))
    done = subprocess.run(
        [python, str(script), threads], input=json.dumps(content), capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def answer(rng: random.Random, claims: int, passages: int, words: int) -> Interaction:
    """An answer whose claims are sentences of its passages, every second one with other words in it."""
    texts = [_text(rng, words) for _ in range(passages)]
    picked = [rng.choice(rng.choice(texts).split(". ")).rstrip(".") for _ in range(claims)]
    sentences = [f"{s} at {rng.choice(_WORDS)} {n}." for n, s in enumerate(picked)]
    return Interaction(
        trace_id=f"{rng.getrandbits(128):032x}",
        span_id="0" * 16,
        app="bench",
        question="What is new?",
        answer=" ".join(sentences),
        passages=tuple(Passage(source_id=f"d{n}", text=text) for n, text in enumerate(texts)),
    )


def _answers_apart() -> dict[str, float]:
    """In a process of its own, so that its memory is that of a worker and of nothing else."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.verifier", "answers"], capture_output=True, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _answers() -> dict[str, float]:
    import resource

    evaluator = evaluators.resolve(evaluators.GROUNDING, settings.load({}))
    rng = random.Random(SEED)
    given = [answer(rng, CLAIMS, PASSAGES, WORDS) for _ in range(ANSWERS)]
    first = pipeline.evaluate_batch(given[:2], evaluator)
    verifiable = sum(claim.verifiable for one in first for claim in one.claims) / len(first)
    took = _best(lambda: pipeline.evaluate_batch(given, evaluator))
    return {
        "verifier.answers_per_s": len(given) / took,
        "verifier.claims_per_answer": verifiable,
        "verifier.rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _installed() -> int:
    """Bytes of the distributions that `pip install aftercheck[worker,embedded]` brings, and of this package."""
    waiting = [("aftercheck", extra) for extra in EXTRAS]
    seen: set[tuple[str, str]] = set()
    names: set[str] = set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        names.add(name)
        for text in metadata.requires(name) or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                waiting += [(wanted.name.lower(), one) for one in (*wanted.extras, "")]
    total = sum(_size(metadata.distribution(name)) for name in names if name != "aftercheck")
    root = Path(evaluators.__file__).parents[2]
    for part in ("producer/aftercheck", "schemas/aftercheck_schemas", "worker/aftercheck_worker", "migrations"):
        total += sum(
            p.stat().st_size for p in (root / part).rglob("*") if p.is_file() and "__pycache__" not in p.parts
        )
    return total


def _size(distribution: metadata.Distribution) -> int:
    places = [Path(str(distribution.locate_file(path))) for path in distribution.files or ()]
    return sum(place.stat().st_size for place in places if place.is_file() and "__pycache__" not in place.parts)


def _cost() -> dict[str, float]:
    evaluator = evaluators.resolve(evaluators.GROUNDING, settings.load({}))
    rng = random.Random(SEED)
    sizes: list[int] = []
    times: list[float] = []
    for claims, passages in GRID:
        given = answer(rng, claims, passages, 60)
        began = time.perf_counter()
        pipeline.evaluate_batch([given], evaluator)
        times.append(time.perf_counter() - began)
        sizes.append(claims * passages)
    _plot(sizes, times)
    logs = [(math.log(size), math.log(took)) for size, took in zip(sizes, times, strict=True)]
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)
    return {"verifier.cost_200x1000_s": times[-1], "verifier.cost_exponent": slope}


def _plot(sizes: list[int], times: list[float]) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    axes.loglog(sizes, times, "o-", label="measured")
    axes.loglog(sizes, [times[-1] * size / sizes[-1] for size in sizes], "--", label="linear")
    axes.set_xlabel("claims x passages of one answer")
    axes.set_ylabel("seconds")
    axes.legend()
    PLOT.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PLOT)
    plt.close(figure)


if __name__ == "__main__":
    print(msgspec.json.encode(_answers() if sys.argv[1:] == ["answers"] else run()).decode())
