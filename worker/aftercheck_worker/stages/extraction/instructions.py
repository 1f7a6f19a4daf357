"""The whole system prompt as context (context F): what remains of it without the instructions."""

from __future__ import annotations

import re
from typing import Final

from aftercheck_worker.stages.extraction.labels import cue

_MIN_PROMPT: Final = 80
_MIN_WITHOUT_CUE: Final = 200
_MIN_FACTS: Final = 30
_BULLET: Final = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s*")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_IMPERATIVE: Final = re.compile(
    r"(?:you(?:'re| are| will| must| should| can| may| have)\b|your (?:task|job|role|goal|name)\b|act as\b|"
    r"(?:please |always |never |only |just |then |and )?"
    r"(?:answer|use|reply|respond|keep|avoid|cite|quote|refuse|help|assist|"
    r"write|return|output|provide|follow|stay|speak|say|do not|don't|never|be|make sure|ensure|think|assume|format|"
    r"translate|summari[sz]e|explain|include|ask|call|respect|ignore|base your|refer)\b|"
    r"(?:if|when) (?:you|the (?:answer|user|question|context)|asked|unsure|no )|given (?:the|this)|based on\b|"
    r"(?:some |the )?(?:following )?rules?\b|instructions?\b|here (?:is|are)|below (?:is|are)|the following|"
    r"answer only|never\b|always\b|"
    r"jesteś|twoim zadaniem|odpowiada|odpowied[zź]|używaj|użyj|korzystaj|"
    r"nie (?:wymyślaj|zgaduj|odpowiadaj|używaj)|"
    r"zawsze\b|nigdy\b|jeśli nie|na podstawie|poniżej|"
    r"(?:ти|ви)\b|твоє завдання|відповіда|відповід[ьа]|використовуй|"
    r"не (?:вигадуй|відповідай|використовуй)|завжди\b|ніколи\b|"
    r"якщо (?:не|ти|ви)|на основі|нижче|"
    r"(?:ты|вы)\b|твоя задача|отвеча|ответь|используй|"
    r"не (?:выдумывай|отвечай|используй)|всегда\b|никогда\b|"
    r"если (?:не|ты|вы)|на основе|ниже|"
    r"(?:du bist|sie sind)\b|deine aufgabe|antworte|beantworte|verwende|nutze|benutze|immer\b|niemals\b|"
    r"wenn (?:du|sie|die)|"
    r"auf (?:basis|grundlage)|im folgenden|erfinde)",
    re.IGNORECASE,
)


def facts_in(system: str) -> str:
    """The part of a system prompt that states something, "" when it only instructs.

    A prompt that speaks of context needs more than 80 characters, any other one 200 characters of facts:
    a persona is not what an answer is checked against, and silence is better than a false zero.
    """
    if len(system) <= _MIN_PROMPT:
        return ""
    kept: list[str] = []
    speaks_of_context = False
    for line in system.split("\n"):
        sentences = _SENTENCE.split(line)
        stated = [sentence for sentence in sentences if not _instructs(sentence)]
        speaks_of_context = speaks_of_context or any(cue(text) for text in sentences if _instructs(text))
        kept.append(line if len(stated) == len(sentences) else " ".join(stated))
    facts = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    enough = len(facts) >= (_MIN_FACTS if speaks_of_context else _MIN_WITHOUT_CUE)
    return facts if enough else ""


def _instructs(sentence: str) -> bool:
    return _IMPERATIVE.match(_BULLET.sub("", sentence).lstrip(" \t>*_#\"'")) is not None
