"""Evaluators by name: a verifier, a policy, and the version that says everything that can change a verdict (R25).

`default` is the trained verifier where its weights are installed, otherwise `lexical-v1`, and the name that is stored
says which it was. A back end joins with `register("onnx", build)`; `build` returns None when it is not installed.
Your own joins without registration: the name `package.module:function` calls `function(settings)`.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
from collections.abc import Callable
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, Literal

import msgspec

from aftercheck_worker.engine import Engine
from aftercheck_worker.errors import ConfigurationError
from aftercheck_worker.models import registry
from aftercheck_worker.models.base import PairScorer
from aftercheck_worker.models.lexical import LexicalScorer
from aftercheck_worker.models.lock import LockedModel
from aftercheck_worker.models.lock import read as read_lock
from aftercheck_worker.models.store import Store
from aftercheck_worker.settings import Settings
from aftercheck_worker.stages.calibration import AnswerCalibration
from aftercheck_worker.stages.decision import Thresholds
from aftercheck_worker.stages.judging.routing import Band
from aftercheck_worker.stages.scoring import Identity, Policy
from aftercheck_worker.stages.verification import LexicalVerifier, Verifier

logger = logging.getLogger(__name__)

Quality = Literal["smoke", "standard"]
Build = Callable[[Settings], "Evaluator | None"]

LEXICAL: Final = "lexical-v1"
GROUNDING: Final = "grounding-v1"
MODEL: Final = "model-v1"
"""The engine around an installed model of your own choice, see `aftercheck models`."""
ENGLISH: Final = "aftercheck-verifier-en"
"""Folder of the weights that the wheel carries."""
DEFAULT: Final = "default"
CODE: Final = ("stages", "text", "models", "engine.py", "pipeline.py")
"""Files of this package whose bytes are part of the version: parsers, lexicons, stages, back ends."""

_builders: dict[str, Build] = {}
_preferred: list[str] = []


class Evaluator(msgspec.Struct, frozen=True, kw_only=True):
    """All that turns interactions into evaluations.

    Attributes:
        identity: name, version (sha256 hex) and quality as stored with every evaluation.
        verifier: the back end.
        policy: risk profile and the formula behind `action`.
        spec: what `identity.version` is the hash of, for the evaluator table.
        answer: calibration of whole answers; None lets the weakest claim stand.
        band: probabilities between which a judge, where there is one, decides.
    """

    identity: Identity
    verifier: Verifier
    policy: Policy
    spec: dict[str, object]
    answer: AnswerCalibration | None = None
    band: Band = Band()

    @property
    def name(self) -> str:
        """The bounded name that labels metrics."""
        return self.identity.name

    @property
    def version(self) -> str:
        """sha256 hex over `spec`."""
        return self.identity.version

    @property
    def quality(self) -> Quality:
        """`smoke` is kept out of alerts."""
        return self.identity.quality


def assemble(
    name: str,
    verifier: Verifier,
    *,
    policy: Policy,
    quality: Quality = "standard",
    answer: AnswerCalibration | None = None,
) -> Evaluator:
    """Return an evaluator around `verifier`, with its version."""
    spec: dict[str, object] = {
        "name": name,
        "quality": quality,
        "models": verifier.models,
        "parameters": verifier.parameters,
        "policy": policy,
        "answer": answer,
        "code": code(CODE),
    }
    encoded = msgspec.json.encode(spec, order="deterministic")
    identity = Identity(name=name, version=hashlib.sha256(encoded).hexdigest(), quality=quality)
    plain: dict[str, object] = msgspec.json.decode(encoded, type=dict[str, object])
    return Evaluator(identity=identity, verifier=verifier, policy=policy, spec=plain, answer=answer)


def register(name: str, build: Build, *, preferred: bool = False) -> None:
    """Make `name` known. A `preferred` one is tried for `default`, in the order of registration."""
    _builders[name] = build
    if preferred and name not in _preferred:
        _preferred.append(name)


def names() -> tuple[str, ...]:
    """Names that `resolve` accepts."""
    return (DEFAULT, *sorted(_builders))


def resolve(name: str, settings: Settings) -> Evaluator:
    """Build the evaluator `name`; loads models, so call it in the process that uses them.

    Raises:
        ConfigurationError: nobody registered `name`, or its weights are not installed.
        ModelRefused: its weights are altered or unsafe.
    """
    if name == DEFAULT:
        for candidate in _preferred:
            found = _builders[candidate](settings)
            if found is not None:
                return found
        logger.warning(
            "No trained verifier is installed: %s checks the answers, quality=smoke, kept out of alerts",
            LEXICAL,
            extra={"action": "evaluator_fallback"},
        )
        name = LEXICAL
    build = _imported(name) if ":" in name else _builders.get(name)
    if build is None:
        raise ConfigurationError(
            f"There is no evaluator {name!r}", why=f"known are {', '.join(names())}", fix="set AFTERCHECK_EVALUATOR"
        )
    found = build(settings)
    if found is None:
        raise ConfigurationError(
            f"Evaluator {name!r} cannot run", why="its model is not installed", fix="run `aftercheck models list`"
        )
    return found


def _imported(name: str) -> Build | None:
    """Find `package.module:function`; None when there is none."""
    module, _, function = name.partition(":")
    try:
        found: Build | None = getattr(importlib.import_module(module), function, None)
    except ImportError as error:
        logger.error("Evaluator %r cannot be imported: %s", name, error, extra={"action": "evaluator_import"})
        return None
    return found


def _lexical(settings: Settings) -> Evaluator:
    policy = Policy(action_from=settings.action_from)
    return assemble(LEXICAL, LexicalVerifier(LexicalScorer()), policy=policy, quality="smoke")


def _grounding(settings: Settings) -> Evaluator | None:
    folder = registry.SHIPPED / ENGLISH
    if not (folder / "config.json").is_file():
        return None
    from aftercheck_worker.models.onnx import OnnxPairScorer

    scorer = OnnxPairScorer(folder, spin=settings.inference_spin)
    config = scorer.config
    thresholds = msgspec.convert(config.thresholds, Thresholds)
    verifier = Engine(scorer, thresholds=thresholds, budget_words=config.window_words)
    return assemble(
        GROUNDING, verifier, policy=Policy(action_from=settings.action_from), answer=_answer(config.answer)
    )


def _model(settings: Settings) -> Evaluator | None:
    """The model that AFTERCHECK_VERIFIER_MODEL names, at plain thresholds: ours were fitted to our own weights."""
    if not settings.verifier_model:
        return None
    store = Store(settings.models_home, read_lock(settings.models_lock))
    found = store.lock.find(settings.verifier_model)
    if found.kind != "pair":
        raise ConfigurationError(
            f"Model {found.name} cannot check claims",
            why=f"it is of kind {found.kind}",
            fix="choose one of kind pair",
        )
    verifier = Engine(_scorer(found, store.folder(found.name)))
    return assemble(MODEL, verifier, policy=Policy(action_from=settings.action_from))


def _scorer(model: LockedModel, folder: Path) -> PairScorer:
    if model.format == "onnx":
        from aftercheck_worker.models.onnx import OnnxPairScorer

        return OnnxPairScorer(folder)
    from aftercheck_worker.models.torch_pair import TorchPairScorer

    weights = next(file.sha256 for name, file in model.files.items() if name.endswith(".safetensors"))
    return TorchPairScorer(folder, name=model.name, revision=model.revision, sha256=weights)


def _answer(coefficients: dict[str, float] | None) -> AnswerCalibration | None:
    return msgspec.convert(coefficients, AnswerCalibration, strict=False) if coefficients else None


register(LEXICAL, _lexical)
register(GROUNDING, _grounding, preferred=True)
register(MODEL, _model)


@lru_cache(maxsize=4)
def code(names: tuple[str, ...]) -> str:
    """sha256 over the source of files and folders of this package, such as all that stands behind a verdict.

    A hash of bytes moves on a comment too; the opposite, a changed verdict under an old version, cannot happen.
    """
    digest = hashlib.sha256()
    root = resources.files("aftercheck_worker")
    for name in names:
        _add(digest, root / name)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, path: Traversable) -> None:
    if path.is_dir():
        for child in sorted(path.iterdir(), key=lambda entry: entry.name):
            if child.name not in ("__pycache__", "weights"):  # weights count by the hashes of their ModelInfo
                _add(digest, child)
    elif path.is_file() and not path.name.endswith((".onnx", ".pyc")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
