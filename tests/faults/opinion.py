"""Scripts for the judge server that hold an opinion, in the shape that each prompt asks for."""

from __future__ import annotations

import json
from typing import cast

from tests.faults.judge_server import Reply, Script

Data = dict[str, list[dict[str, str]]]


def data(request: dict[str, object]) -> Data:
    """The data of a prompt: what stands between its delimiter lines."""
    messages = cast("list[dict[str, str]]", request["messages"])
    return cast("Data", json.loads(messages[1]["content"].split("\n")[2]))


def says(status: str, quote: str) -> Script:
    """A judge with one opinion and one quote for every claim, and full marks for the rest."""

    def script(number: int, request: dict[str, object]) -> Reply:
        del number
        found = data(request)
        if "claims" in found:
            verdict = {"evidence": [{"quote": quote}], "rationale": "r", "status": status, "confidence": 0.9}
            claims = [{"claim_id": claim["claim_id"], **verdict} for claim in found["claims"]]
            return Reply(content=json.dumps({"verdicts": claims}))
        if "passages" in found:
            graded = [
                {"source_id": one["source_id"], "evidence": one["text"][:30], "reasoning": "r", "score": 3}
                for one in found["passages"]
            ]
            return Reply(content=json.dumps({"passages": graded}))
        part = {"part": "p", "evidence": str(found["answer"])[:30], "reasoning": "r", "status": "answered"}
        return Reply(content=json.dumps({"parts": [part]}))

    return script


def always(reply: Reply) -> Script:
    """A judge that sends the same, whatever it is asked."""
    return lambda number, request: reply
