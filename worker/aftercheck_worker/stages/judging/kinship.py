"""Is the judge a relative of the model that it judges, or no larger? A label and a warning, never a refusal (R22).

Names are all that is known of a remote model, so a size or a family that a name does not say is not guessed.
"""

from __future__ import annotations

import re
from typing import Final

SAME_FAMILY: Final = "judge_same_family"
NOT_LARGER: Final = "judge_not_larger"

_FAMILIES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (name, re.compile(rf"(?<![a-z])(?:{pattern})", re.IGNORECASE))
    for name, pattern in (
        ("gpt", r"gpt|chatgpt|o[134](?![a-z0-9])|davinci"),
        ("claude", "claude"),
        ("gemini", "gemini|gemma"),
        ("qwen", "qwen|qwq"),
        ("llama", "llama|vicuna"),
        ("mistral", "mistral|mixtral|ministral|magistral|codestral|devstral"),
        ("deepseek", "deepseek"),
        ("phi", r"phi(?![a-z])"),
        ("granite", "granite"),
        ("command", "command|aya"),
        ("glm", "glm|chatglm"),
        ("yi", r"yi(?![a-z])"),
        ("falcon", "falcon"),
        ("bielik", "bielik"),
        ("kimi", "kimi|moonshot"),
    )
)
_SIZE: Final = re.compile(r"(?<![\w.])(?:(\d+)x)?(\d+(?:\.\d+)?)(b|m)(?![a-z0-9])", re.IGNORECASE)


def family(model: str) -> str | None:
    """Return the family that a model's name tells, None when it tells none.

    The last family named counts: `DeepSeek-R1-Distill-Qwen-7B` is a Qwen by its weights.
    """
    found = [(match.start(), name) for name, pattern in _FAMILIES for match in pattern.finditer(model)]
    return max(found)[1] if found else None


def size(model: str) -> float | None:
    """Return billions of parameters as the name tells them (experts multiplied), None when it does not."""
    found = _SIZE.search(model.replace("_", "-"))
    if found is None:
        return None
    billions = float(found.group(2)) * (1.0 if found.group(3).lower() == "b" else 0.001)
    return billions * int(found.group(1) or 1)


def labels(judge: str, judged: str) -> tuple[str, ...]:
    """Return `judge_same_family` and `judge_not_larger` where the two names say so."""
    out: list[str] = []
    mine = family(judge)
    if mine is not None and mine == family(judged):
        out.append(SAME_FAMILY)
    ours, theirs = size(judge), size(judged)
    if (judge and judge == judged) or (ours is not None and theirs is not None and ours <= theirs):
        out.append(NOT_LARGER)
    return tuple(out)
