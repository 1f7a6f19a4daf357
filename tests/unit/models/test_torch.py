"""Packed attention equals one by one; runs with torch and transformers (extra `[gpu]`), is skipped without them."""

from __future__ import annotations

import importlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing

from aftercheck_worker.errors import ModelRefused
from aftercheck_worker.models.base import Pair
from aftercheck_worker.models.torch_classifier import Row, Task, TorchClassifier
from aftercheck_worker.models.torch_pair import TorchPairScorer, roles
from aftercheck_worker.models.torch_token import TorchTokenVerifier, joined

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
SEED = 20261201
SENTENCE = "the fee is five euro per day dogs are welcome in east wing office closes at six on fridays"
WORDS = SENTENCE.split()
SMALL = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4,
    "max_position_embeddings": 128, "pad_token_id": 0, "initializer_range": 0.4, "num_labels": 3,
    "id2label": {0: "contradiction", 1: "entailment", 2: "neutral"},
}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {
    "Bert": {},
    "Roberta": {"type_vocab_size": 1},
    "ModernBert": {"local_attention": 8, "global_attn_every_n_layers": 2, "cls_token_id": 1, "sep_token_id": 2},
    "ModernBert mean": {"local_attention": 8, "classifier_pooling": "mean", "cls_token_id": 1, "sep_token_id": 2},
}


def make(folder: Path, kind: str, task: Task, **more: Any) -> Path:
    """A folder with random weights and a tokenizer of a few words."""
    torch.manual_seed(SEED)
    family = kind.split(maxsplit=1)[0]
    config = getattr(transformers, f"{family}Config")(**SMALL | OWN[kind] | more)
    head = "SequenceClassification" if task == "pair" else "TokenClassification"
    getattr(transformers, f"{family}For{head}")(config).save_pretrained(folder, safe_serialization=True)
    vocabulary = {word: n for n, word in enumerate(("[PAD]", "[CLS]", "[SEP]", "[UNK]", *WORDS))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def rows(kind: str, count: int = 12) -> list[Row]:
    rng = random.Random(SEED)
    out: list[Row] = []
    for _ in range(count):
        length = rng.randint(3, 100)
        types = [0 if kind.startswith("Roberta") else int(place > length // 2) for place in range(length)]
        out.append(Row([rng.randint(3, 63) for _ in range(length)], types))
    return out


@pytest.mark.req("R14")
@pytest.mark.parametrize("task", ["pair", "token"])
@pytest.mark.parametrize("kind", OWN)
def test_packed_equals_one_by_one(tmp_path: Path, kind: str, task: Task) -> None:
    folder = make(tmp_path, kind, task)
    given = rows(kind)
    packed = TorchClassifier(folder, task, device="cpu", max_tokens=300)
    alone = TorchClassifier(folder, task, device="cpu", padded=True)
    assert packed.packs
    assert not alone.packs
    expected = [alone.logits([row])[0] for row in given]
    assert max(float(np.abs(one).max()) for one in expected) > 0.1, "logits near zero prove nothing"
    for found, want in zip(packed.logits(given), expected, strict=True):
        assert found.shape == want.shape
        assert float(np.abs(found - want).max()) <= 1e-4
    for found, want in zip(alone.logits(given), expected, strict=True):
        assert float(np.abs(found - want).max()) <= 1e-4


def test_out_of_memory_halves_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = TorchClassifier(make(tmp_path, "Bert", "pair"), "pair", device="cpu")
    given = rows("Bert")
    expected = classifier.logits(given)
    run = classifier._flat
    sizes: list[int] = []

    def small(batch: Sequence[Row]) -> Any:
        sizes.append(len(batch))
        if len(batch) > 2:
            raise torch.OutOfMemoryError
        return run(batch)

    monkeypatch.setattr(classifier, "_flat", small)
    assert all(np.allclose(a, b, atol=1e-5) for a, b in zip(classifier.logits(given), expected, strict=True))
    assert sizes[0] == len(given)
    assert max(sizes[-3:]) <= 3

    def never(batch: Sequence[Row]) -> Any:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(classifier, "_flat", never)
    with pytest.raises(torch.OutOfMemoryError):
        classifier.logits(given)


def test_an_unknown_architecture_is_padded(tmp_path: Path) -> None:
    torch.manual_seed(SEED)
    config = transformers.ElectraConfig(**SMALL | {"embedding_size": 32})
    transformers.ElectraForSequenceClassification(config).save_pretrained(tmp_path, safe_serialization=True)
    classifier = TorchClassifier(tmp_path, "pair", device="cpu")
    given = rows("Electra", 5)
    assert not classifier.packs
    for found, row in zip(classifier.logits(given), given, strict=True):
        assert float(np.abs(found - classifier.logits([row])[0]).max()) <= 1e-4


def test_a_cross_encoder_scores_pairs(tmp_path: Path) -> None:
    scorer = TorchPairScorer(make(tmp_path, "Bert", "pair"), name="tiny", revision="1")
    pairs = [Pair(premise="the fee is five euro", claim=claim) for claim in ("the fee is six", "dogs are welcome")]
    found = scorer.score([*pairs, *pairs])
    assert found[:2] == [pytest.approx(one) if isinstance(one, float) else one for one in found[2:]]
    assert all(s.entailment + s.neutral + s.contradiction == pytest.approx(1.0, abs=1e-5) for s in found)


def test_only_the_premise_is_cut(tmp_path: Path) -> None:
    scorer = TorchPairScorer(make(tmp_path, "Bert", "pair"), name="tiny", revision="1")
    long = "the fee is five euro " * 100
    (one,) = scorer.score([Pair(premise=long, claim="dogs are welcome in the east wing")])
    (other,) = scorer.score([Pair(premise=long, claim="dogs are welcome in the east office")])
    assert one != other


def test_a_token_classifier_finds_spans(tmp_path: Path) -> None:
    verifier = TorchTokenVerifier(make(tmp_path, "ModernBert", "token", num_labels=2), name="tiny", revision="1")
    answer = "dogs are welcome in the east wing"
    (found,) = verifier.spans([(["the fee is five euro"], "the fee", answer)])
    assert all(0 <= span.start < span.end <= len(answer) and 0.5 < span.score <= 1 for span in found)


def test_runs_of_tokens_are_joined() -> None:
    logits = np.array([[0, 9], [0, 9], [9, 0], [0, 2], [0, 3], [9, 0], [0, 9]], dtype=np.float32)
    found = joined([(0, 4), (0, 2), (3, 5), (6, 8), (8, 11), (12, 13), (14, 15)], [0, 1, 1, 1, 1, 1, 1], logits)
    assert [(span.start, span.end) for span in found] == [(0, 2), (6, 11), (14, 15)]
    assert found[1].score == pytest.approx(1 / (1 + np.exp(-3)), abs=1e-4)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("contradiction", "entailment", "neutral"), (1, 0)),
        (("entailment", "not_entailment"), (0, None)),
        (("unsupported", "supported"), (1, None)),
        (("LABEL_0",), (0, None)),
    ],
)
def test_labels_are_read_by_name(labels: tuple[str, ...], expected: tuple[int, int | None]) -> None:
    assert roles(labels, "m") == expected


def test_labels_without_a_meaning_are_refused() -> None:
    with pytest.raises(ModelRefused, match="no label that means support"):
        roles(("LABEL_0", "LABEL_1"), "m")


@pytest.mark.req("S29")
def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    make(tmp_path, "Bert", "pair")
    weights = importlib.import_module("safetensors.torch").load_file(tmp_path / "model.safetensors")
    torch.save(weights, tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(OSError, match="safetensors"):
        TorchClassifier(tmp_path, "pair", device="cpu")
