"""One fake endpoint for all: the case's reply, in the form that each tool asks its judge for.

Every tool asks for verdicts in a form of its own, so the fault of a case (fence, prose, illegal escape, missing
claim, unknown word, number out of range, invented quote, refusal, code) is put into that form; text without JSON is
served as it is. The calls before the verdicts (statements, truths, trivial ones) get good replies.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import json_repair
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

MAX_SCORE: Final = 3
_BODY: Final = re.compile(r'\{"verdicts".*\}', re.DOTALL)


class Case(msgspec.Struct, frozen=True):
    """A row of judge_replies.jsonl."""

    id: str
    claims: list[str]
    context: list[str]
    raw: str
    expected: dict[str, Any]
    why: str = ""

    @property
    def answer(self) -> str:
        """The claims as an answer of sentences."""
        return " ".join(f"{claim}." for claim in self.claims)


class Judged(msgspec.Struct, frozen=True):
    """A verdict of the case's reply, as far as it can be read."""

    claim: str
    status: str
    rationale: str
    quote: str
    number: float | None = None

    @property
    def supported(self) -> bool:
        """By its own word."""
        return self.status == "supported"


class Form(msgspec.Struct, frozen=True):
    """The case's reply: words before and after, verdicts, and whether the JSON has an illegal escape."""

    before: str
    after: str
    verdicts: list[Judged]
    escape: bool


def form(case: Case) -> Form | None:
    """Take a reply apart; None when there are no verdicts in it."""
    found = _BODY.search(case.raw)
    if found is None:
        return None
    read: Any = json_repair.loads(found.group())
    verdicts = [_judged(case, item) for item in read["verdicts"]]
    return Form(case.raw[: found.start()], case.raw[found.end() :], verdicts, "\\'" in found.group())


def _judged(case: Case, item: Mapping[str, Any]) -> Judged:
    confidence = float(item["confidence"])
    return Judged(
        claim=case.claims[int(str(item["claim_id"]).removeprefix("c")) - 1],
        status=str(item["status"]),
        rationale=str(item["rationale"]),
        quote=str((item["evidence"] or [""])[0]),
        number=confidence if confidence > 1 else None,
    )


def for_ragas(case: Case) -> str:
    """Statements with a verdict of 0 or 1; other words and numbers stay as they are."""

    def item(one: Judged) -> dict[str, object]:
        return {"statement": one.claim, "reason": one.rationale, "verdict": _bit(one)}

    return _wrapped(case, "statements", item)


def for_deepeval(case: Case) -> str:
    """Verdicts yes, no or borderline."""
    words = {"supported": "yes", "contradicted": "no", "not_found": "borderline"}

    def item(one: Judged) -> dict[str, object]:
        word = words.get(one.status, one.status) if one.number is None else str(one.number)
        return {"verdict": word, "reason": one.rationale}

    return _wrapped(case, "verdicts", item)


def for_trulens(case: Case, claim: str, *, structured: bool) -> str:
    """One statement per call: criteria, supporting evidence, score 0..3; a claim without verdict gets no words."""
    found = form(case)
    if found is None:
        return case.raw
    one = next((judged for judged in found.verdicts if judged.claim.rstrip(".") == claim.rstrip(".")), None)
    if one is None:
        return ""
    score: object = one.number if one.number is not None else {"supported": MAX_SCORE}.get(one.status, 0)
    if one.status not in ("supported", "contradicted", "not_found"):
        score = one.status
    if structured:
        body = json.dumps({"criteria": claim, "supporting_evidence": f"{one.quote} {one.rationale}", "score": score})
    else:
        body = f"Criteria: {claim}\nSupporting Evidence: {one.quote} {one.rationale}\nScore: {score}"
    return found.before + body + found.after


def _bit(one: Judged) -> object:
    if one.number is not None:
        return int(one.number)
    if one.status in ("supported", "contradicted", "not_found"):
        return int(one.supported)
    return int(one.status) if re.fullmatch(r"-?\d+", one.status) else one.status


def _wrapped(case: Case, name: str, item: Callable[[Judged], dict[str, object]]) -> str:
    found = form(case)
    if found is None:
        return case.raw
    body = json.dumps({name: [item(one) for one in found.verdicts]})
    return found.before + (body.replace("'", "\\'") if found.escape else body) + found.after


class Endpoint:
    """`/{tool}/{case}/v1/chat/completions`. `unknown` keeps prompts that it did not understand: the run fails."""

    def __init__(self, cases: list[Case]) -> None:
        self._cases = {case.id: case for case in cases}
        self.unknown: list[str] = []
        self.calls: dict[str, int] = {}

    def app(self) -> Starlette:
        """The application."""
        return Starlette(
            routes=[
                Route("/v1/{tool}/{case}/v1/chat/completions", self._chat, methods=["POST"]),
                Route("/v1/{tool}/{case}/v1/responses", _no_responses, methods=["POST"]),
            ]
        )

    async def _chat(self, request: Request) -> Response:
        body: dict[str, Any] = await request.json()
        tool, case = request.path_params["tool"], self._cases[request.path_params["case"]]
        self.calls[tool] = self.calls.get(tool, 0) + 1
        prompt = "\n".join(str(message["content"]) for message in body["messages"])
        reader = {"ragas": _ragas, "deepeval": _deepeval, "trulens": _trulens, "aftercheck": _ours}[tool]
        answer = reader(case, prompt, body)
        if answer is None:
            self.unknown.append(f"{tool} {case.id}: {prompt[:2000]} {sorted(body)}")
            return JSONResponse({"error": {"message": "unknown prompt"}}, status_code=400)
        return JSONResponse(_completion(answer, body))


async def _no_responses(_: Request) -> Response:
    """Most compatible servers have no Responses API; TruLens asks for it first and then falls back."""
    return JSONResponse({"error": {"message": "The Responses API is not supported here"}}, status_code=400)


def _ours(case: Case, prompt: str, _: dict[str, Any]) -> str | None:
    return case.raw if '"claims"' in prompt else None


def _ragas(case: Case, prompt: str, _: dict[str, Any]) -> str | None:
    if "Break down each sentence" in prompt or "break down each sentence" in prompt:
        return json.dumps({"statements": case.claims})
    return for_ragas(case) if "judge the faithfulness" in prompt or "did not satisfy" in prompt else None


def _deepeval(case: Case, prompt: str, _: dict[str, Any]) -> str | None:
    if '"verdicts"' in prompt or "'verdicts'" in prompt:
        return for_deepeval(case)
    if '"truths"' in prompt or "'truths'" in prompt:
        return json.dumps({"truths": case.context})
    if '"claims"' in prompt or "'claims'" in prompt:
        return json.dumps({"claims": case.claims})
    return None


def _trulens(case: Case, prompt: str, body: dict[str, Any]) -> str | None:
    if "Convert the following text" in prompt:
        return str(body["messages"][-1]["content"])
    sentences = [f"{claim}." for claim in case.claims]
    marks = ("Hypothesis: ", "STATEMENT: ")
    hypothesis = next((one for one in sentences if any(f"{mark}{one}" in prompt for mark in marks)), None)
    if hypothesis is not None:
        return for_trulens(case, hypothesis.rstrip("."), structured=bool(body.get("response_format")))
    if "trivial" in prompt.lower() or ("INFORMATION OVERLAP" not in prompt and str(sentences) in prompt):
        return case.raw if "__import__" in case.raw else str(sentences)
    if case.answer in prompt:
        return "\n".join(sentences)
    return None


def _completion(text: str, body: dict[str, Any]) -> dict[str, Any]:
    """A chat completion, or the call of the tool that was demanded."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    reason = "stop"
    if body.get("tool_choice") and body.get("tools"):
        function = {"name": body["tools"][0]["function"]["name"], "arguments": text}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        }
    return {
        "id": "x",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
