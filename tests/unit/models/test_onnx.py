"""The shipped weights: the same score alone and in company, spans inside the claim, and nothing altered is loaded."""

from __future__ import annotations

import json
import random
import shutil
import sys
from pathlib import Path

import msgspec
import pytest

from aftercheck_worker.errors import ModelRefused
from aftercheck_worker.models import registry
from aftercheck_worker.models.base import Pair
from aftercheck_worker.models.onnx import OnnxPairScorer

SHIPPED = registry.SHIPPED / "aftercheck-verifier-en"
SOURCE = "The fee is 5 EUR per day. Dogs are welcome in the east wing. The office closes at 18:00 on Fridays."
CLAIMS = (
    "The fee is 5 EUR per day.",
    "The fee is 7 EUR per day.",
    "Dogs are welcome in the east wing.",
    "Dogs are not welcome in the east wing.",
    "The office closes at 18:00 on Fridays.",
    "The museum was founded by a painter.",
    "Cats are welcome in the garden of the hotel behind the old mill.",
)

pytestmark = pytest.mark.skipif(not (SHIPPED / "config.json").is_file(), reason="the wheel carries no weights")


@pytest.fixture(scope="module")
def scorer() -> OnnxPairScorer:
    return OnnxPairScorer(SHIPPED)


def pair(claim: str, premise: str = SOURCE) -> Pair:
    return Pair(premise=premise, claim=claim, question="What should I know?")


def test_scores_are_probabilities_that_sum_to_one(scorer: OnnxPairScorer) -> None:
    for score in scorer.score([pair(claim) for claim in CLAIMS]):
        assert score.entailment + score.neutral + score.contradiction == pytest.approx(1.0)
        assert min(score.entailment, score.neutral, score.contradiction) >= 0


def test_alone_and_in_ten_random_batches(scorer: OnnxPairScorer) -> None:
    seed = random.randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    rng = random.Random(seed)
    crowd = [pair(claim, " ".join(rng.choices(SOURCE.split(), k=rng.randint(3, 150)))) for claim in CLAIMS * 3]
    (alone,) = scorer.score([pair(CLAIMS[0])])

    for _ in range(10):
        batch = [*rng.sample(crowd, rng.randint(1, len(crowd))), pair(CLAIMS[0])]
        assert scorer.score(batch)[-1].entailment == pytest.approx(alone.entailment, abs=0.01)


def test_order_of_results_is_the_order_of_pairs(scorer: OnnxPairScorer) -> None:
    pairs = [pair(claim) for claim in CLAIMS]

    assert scorer.score(pairs[::-1]) == scorer.score(pairs)[::-1]


def test_it_tells_the_copied_from_the_unrelated(scorer: OnnxPairScorer) -> None:
    copied, unrelated = scorer.score([pair(CLAIMS[0]), pair(CLAIMS[5])])

    assert copied.entailment > 0.5 > unrelated.entailment


def test_spans_stand_in_the_claim(scorer: OnnxPairScorer) -> None:
    for claim, score in zip(CLAIMS, scorer.score([pair(claim) for claim in CLAIMS]), strict=True):
        for start, end, value in score.spans:
            assert 0 <= start < end <= len(claim)
            assert 0.5 < value <= 1


def test_only_the_premise_is_cut(scorer: OnnxPairScorer) -> None:
    claim = "The last word of this claim is zebra."
    (encoding,) = scorer.encode([pair(claim, "filler words " * 2000)])

    assert len(encoding.ids) == scorer.config.max_tokens
    assert "zebra" in claim[encoding.offsets[-3][0] - len("[unused3] What should I know? [unused5] ") :]


@pytest.mark.parametrize("premise", ["", " ", "\x00", "🏽" * 50, "\u202eabc", "[SEP] [CLS] [unused5]", "a" * 5000])
def test_odd_premises_have_a_score(scorer: OnnxPairScorer, premise: str) -> None:
    (score,) = scorer.score([pair(CLAIMS[0], premise)])

    assert 0 <= score.entailment <= 1


def test_nothing_to_score(scorer: OnnxPairScorer) -> None:
    assert scorer.score([]) == []


def copy(folder: Path) -> Path:
    return Path(shutil.copytree(SHIPPED, folder / "model"))


@pytest.mark.req("F22", "S29")
def test_an_altered_file_is_refused(tmp_path: Path) -> None:
    folder = copy(tmp_path)
    with (folder / "tokenizer.json").open("ab") as stream:
        stream.write(b" ")

    with pytest.raises(ModelRefused, match=r"tokenizer\.json is not the released file") as caught:
        OnnxPairScorer(folder)

    assert caught.value.exit_code == 78
    assert "\n" not in str(caught.value)


@pytest.mark.req("S29")
@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pkl", "modeling.py", "model.pt"])
def test_files_that_may_carry_code_are_refused(tmp_path: Path, name: str) -> None:
    folder = copy(tmp_path)
    (folder / name).write_bytes(b"x")

    with pytest.raises(ModelRefused, match="may carry code"):
        OnnxPairScorer(folder)


@pytest.mark.req("S29")
def test_remote_code_is_refused(tmp_path: Path) -> None:
    folder = copy(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"auto_map": {"AutoModel": "x--y.Z"}}))

    with pytest.raises(ModelRefused, match="needs remote code"):
        OnnxPairScorer(folder)


@pytest.mark.req("F22")
@pytest.mark.parametrize("missing", ["model.onnx", "config.json"])
def test_a_missing_file_is_one_line(tmp_path: Path, missing: str) -> None:
    folder = copy(tmp_path)
    (folder / missing).unlink()

    with pytest.raises(ModelRefused):
        OnnxPairScorer(folder)


def test_a_config_that_is_no_config(tmp_path: Path) -> None:
    folder = copy(tmp_path)
    (folder / "config.json").write_text("{")

    with pytest.raises(ModelRefused, match=r"unreadable config\.json"):
        registry.load_config(folder)


def test_the_fingerprint_covers_every_file() -> None:
    config = registry.load_config(SHIPPED)
    other = msgspec.structs.replace(config, files={**config.files, "tokenizer.json": "0" * 64})

    assert registry.fingerprint(config) != registry.fingerprint(other)


def test_the_input_is_what_the_weights_were_trained_on() -> None:
    training = pytest.importorskip("training.format")
    segments = pytest.importorskip("aftercheck_worker.text.segments")
    rows = [
        ("c [unused5] d", "q?", "before"),
        ("claim " * 200, "", ""),
        ("x", "q " * 90, "p " * 90),
        ("ü\n\t z", "", "y"),
    ]

    for claim, question, previous in rows:
        assert segments.segment_b(claim, question, previous) == training.segment_b(claim, question, previous)
    for runs, title in (([["a b", "c"], ["d"]], "T"), ([[" x\n"]], "")):
        assert segments.segment_a(runs, title) == training.segment_a(runs, title)
