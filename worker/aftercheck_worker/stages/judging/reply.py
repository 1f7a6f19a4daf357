"""The reply ladder: from what a judge wrote to verdicts, without ever guessing (R23, trust F21).

    raw -> drop <think> -> the object (bare, fenced, or the first balanced one) -> json -> json-repair
        -> one verdict at a time -> quotes checked -> one result per claim that was asked

A claim without a valid verdict is an error of that claim. It is never 0, never NaN and never a pass; `eval` is not
used; an unknown status word fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal, cast

import json_repair
import msgspec
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from aftercheck_schemas import Evidence, Passage
from aftercheck_schemas.vocabulary import ClaimStatus
from aftercheck_worker.stages.judging.quotes import Folded, Foldings, check

Parse = Literal["ok", "ok_repaired", "ok_extra_dropped", "ok_downgraded", "partial", "error"]

MAX_REPLY_CHARS: Final = 200_000
MAX_RATIONALE_CHARS: Final = 600
MAX_DEPTH: Final = 32
_PAIRS: Final = {"{": "}", "[": "]"}
_THINK: Final = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE: Final = re.compile(r"```[a-zA-Z0-9_-]*\s*\n?(.*?)```", re.DOTALL)
_LISTS: Final = ("verdicts", "findings", "results", "claims")
_STATUS_ALIASES: Final = {"unverifiable": "unclear", "not_in_context": "not_found"}


def _status(value: object) -> object:
    if not isinstance(value, str):
        return value
    word = re.sub(r"[\s-]+", "_", value.strip().lower())
    return _STATUS_ALIASES.get(word, word)


def _quote(value: object) -> object:
    return {"quote": value} if isinstance(value, str) else value


def _quotes(value: object) -> object:
    if value is None:
        return ()
    return cast("list[object]", value) if isinstance(value, list) else (value,)


class QuoteReply(BaseModel):
    """One quote, before it is checked."""

    model_config = ConfigDict(extra="ignore")
    source_id: str | None = Field(None, validation_alias=AliasChoices("source_id", "source", "id"))
    quote: str = Field(validation_alias=AliasChoices("quote", "text", "span", "evidence"))


class VerdictReply(BaseModel):
    """One verdict, in the order in which a model should write it: evidence, reasons, then the status."""

    model_config = ConfigDict(extra="ignore")
    claim_id: str = Field(validation_alias=AliasChoices("claim_id", "id", "claim"))
    evidence: Annotated[list[Annotated[QuoteReply, BeforeValidator(_quote)]], BeforeValidator(_quotes)] = Field(
        default_factory=list[QuoteReply], validation_alias=AliasChoices("evidence", "quotes", "supporting_evidence")
    )
    rationale: str = Field("", validation_alias=AliasChoices("rationale", "reasoning", "reason", "explanation"))
    status: Annotated[ClaimStatus, BeforeValidator(_status)] = Field(
        validation_alias=AliasChoices("status", "verdict", "label")
    )
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)


class JudgedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge said of one claim. `status` None is an error; `error` then says why."""

    claim_id: str
    status: ClaimStatus | None
    confidence: float = 0.0
    evidence: tuple[Evidence, ...] = ()
    rationale: str = ""
    void_quotes: int = 0
    downgraded: bool = False
    error: str = ""


class ParsedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole reply: one entry per claim that was asked, in that order; none when nothing was usable."""

    parse: Parse
    claims: tuple[JudgedClaim, ...] = ()
    extra: tuple[str, ...] = ()
    repaired: bool = False
    error: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """Ids of the claims that have to be asked again."""
        return tuple(claim.claim_id for claim in self.claims if claim.status is None)


def parse_reply(raw: str, claim_ids: Sequence[str], passages: Sequence[Passage]) -> ParsedReply:
    """Read one reply alone, without any re-ask.

    Args:
        raw: what the model wrote.
        claim_ids: the claims that were asked.
        passages: the usable sources; quotes must stand in them.

    Returns:
        A parsed reply. `parse` is `error` when no asked claim has a valid verdict.
    """
    items, repaired, problem = _items(raw, _LISTS)
    sources = {passage.source_id: passage for passage in passages}
    folded = Foldings(sources)
    found: dict[str, JudgedClaim] = {}
    extra: list[str] = []
    for item in items:
        judged = _judged(item, sources, folded)
        if judged.claim_id not in claim_ids:
            extra.append(judged.claim_id)
        elif judged.claim_id in found:
            found[judged.claim_id] = _merge(found[judged.claim_id], judged)
        else:
            found[judged.claim_id] = judged
    if not any(judged.status is not None for judged in found.values()):
        reason = problem or next(
            (judged.error for judged in found.values()), "no verdict for any claim that was asked"
        )
        return ParsedReply(parse="error", repaired=repaired, extra=tuple(extra), error=reason)
    claims = tuple(
        found.get(claim_id) or JudgedClaim(claim_id=claim_id, status=None, error="missing") for claim_id in claim_ids
    )
    return ParsedReply(
        parse=_word(claims, extra=bool(extra), repaired=repaired),
        claims=claims,
        extra=tuple(extra),
        repaired=repaired,
    )


def _word(claims: Sequence[JudgedClaim], *, extra: bool, repaired: bool) -> Parse:
    if any(claim.status is None for claim in claims):
        return "partial"
    if any(claim.downgraded for claim in claims):
        return "ok_downgraded"
    if extra:
        return "ok_extra_dropped"
    return "ok_repaired" if repaired else "ok"


def _judged(item: object, sources: Mapping[str, Passage], folded: Mapping[str, Folded]) -> JudgedClaim:
    try:
        reply = VerdictReply.model_validate(item)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return JudgedClaim(claim_id=_claim_id(item), status=None, error=f"{where}: {first['msg']}"[:200])
    checked = [check(quote.quote, quote.source_id, sources, folded) for quote in reply.evidence]
    evidence = tuple(part for parts in checked for part in parts)
    needs_proof = reply.status in ("supported", "contradicted")
    downgraded = needs_proof and not evidence
    return JudgedClaim(
        claim_id=reply.claim_id,
        status="unclear" if downgraded else reply.status,
        confidence=reply.confidence,
        evidence=evidence,
        rationale=reply.rationale[:MAX_RATIONALE_CHARS],
        void_quotes=sum(not parts for parts in checked),
        downgraded=downgraded,
    )


def _claim_id(item: object) -> str:
    if isinstance(item, dict):
        fields = cast("dict[str, object]", item)
        return str(next((fields[name] for name in ("claim_id", "id", "claim") if name in fields), ""))
    return ""


def _merge(first: JudgedClaim, second: JudgedClaim) -> JudgedClaim:
    """Two verdicts on one claim: equal ones are one, different ones are none."""
    if first.status is None or second.status is None:
        return second if first.status is None else first
    if first.status == second.status:
        return first if first.confidence <= second.confidence else second
    return JudgedClaim(claim_id=first.claim_id, status=None, error="two different verdicts")


def decode_objects(raw: str, names: Sequence[str]) -> list[object]:
    """Objects of the list that stands under one of `names` in a reply; empty when there is none."""
    return _items(raw, names)[0]


def _items(raw: str, names: Sequence[str]) -> tuple[list[object], bool, str]:
    """Return the listed objects, whether the JSON had to be repaired, and what was wrong with the reply."""
    text = _THINK.sub("", raw[:MAX_REPLY_CHARS]).strip()
    if not text:
        return [], False, "empty reply"
    for candidate in _candidates(text):
        items = _listed(_strict(candidate), names)
        if items is not None:
            return items, False, ""
    for candidate in (*_candidates(text), text[text.find("{") :]):
        items = _listed(_repaired(candidate), names)
        if items is not None:
            return items, True, ""
    return [], False, f"no JSON object with {names[0]}"


def _candidates(text: str) -> Iterator[str]:
    """The whole text, each fenced block, then each balanced object or array."""
    yield text
    for match in _FENCE.finditer(text):
        yield match.group(1).strip()
    for start, end in _balanced(text):
        yield text[start:end]


def _balanced(text: str) -> list[tuple[int, int]]:
    """Outermost bracketed ranges, strings respected; brackets that never close are passed over. Linear."""
    found: list[tuple[int, int]] = []
    stack: list[int] = []
    inside = False
    position = 0
    while position < len(text):
        character = text[position]
        if inside:
            position += character == "\\"
            inside = character != '"'
        elif character == '"':
            inside = bool(stack)
        elif character in _PAIRS:
            stack.append(position)
        elif stack and character == _PAIRS[text[stack[-1]]]:
            start = stack.pop()
            while found and found[-1][0] > start:
                found.pop()
            found.append((start, position + 1))
        position += 1
    return found


def _depth(text: str) -> int:
    """Upper bound of the nesting of `text`."""
    deepest = depth = 0
    for character in text:
        if character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]":
            depth = max(0, depth - 1)
    return deepest


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _strict(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _repaired(text: str) -> object:
    if "{" not in text or _depth(text) > MAX_DEPTH:
        return None
    try:
        return cast("object", json_repair.loads(text))
    except (ValueError, RecursionError, IndexError, TypeError):
        return None


def _listed(value: object, names: Sequence[str]) -> list[object] | None:
    """Objects of a decoded reply: under an accepted name, as a bare list, or keyed by claim id."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        for name in names:
            if name in fields:
                return _listed(fields[name], names) if isinstance(fields[name], list | dict) else None
        if "claim_id" in fields:
            return [fields]
        keyed = [
            _with_id(key, cast("dict[str, object]", item)) for key, item in fields.items() if isinstance(item, dict)
        ]
        return keyed if keyed and len(keyed) == len(fields) else None
    if isinstance(value, list):
        items = cast("list[object]", value)
        return items if items and all(isinstance(item, dict) for item in items) else None
    return None


def _with_id(key: str, fields: dict[str, object]) -> object:
    return fields if "claim_id" in fields else {"claim_id": key, **fields}
