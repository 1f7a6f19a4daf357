"""Runs inside a virtual environment with Ragas: scores each case through both of its interfaces.

Usage: python ragas_peer.py URL CASES.jsonl OUT.jsonl; imports nothing of ours.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

TIMEOUT = 60


def current(url: str, case: dict[str, Any]) -> float:
    """Run the current interface."""
    return asyncio.run(asyncio.wait_for(collections(url, case), TIMEOUT))


async def collections(url: str, case: dict[str, Any]) -> float:
    """The current interface: `ragas.metrics.collections.Faithfulness` with an Instructor client."""
    openai: Any = importlib.import_module("openai")
    llms: Any = importlib.import_module("ragas.llms")
    metrics: Any = importlib.import_module("ragas.metrics.collections")
    client = openai.AsyncOpenAI(base_url=f"{url}/ragas/{case['id']}/v1", api_key="x", max_retries=0)
    metric = metrics.Faithfulness(llm=llms.llm_factory("gpt-4o-mini", client=client))
    found = await metric.ascore(
        user_input=case["question"], response=case["answer"], retrieved_contexts=case["context"]
    )
    return float(found.value)


def evaluate(url: str, case: dict[str, Any]) -> float:
    """The older interface: `ragas.evaluate` with the metric of the tutorials, which turns exceptions into NaN."""
    ragas: Any = importlib.import_module("ragas")
    schema: Any = importlib.import_module("ragas.dataset_schema")
    llms: Any = importlib.import_module("ragas.llms")
    faithfulness: Any = importlib.import_module("ragas.metrics._faithfulness")
    config: Any = importlib.import_module("ragas.run_config")
    chat: Any = importlib.import_module("langchain_openai")
    model = chat.ChatOpenAI(model="gpt-4o-mini", base_url=f"{url}/ragas/{case['id']}/v1", api_key="x", max_retries=0)
    row = {"user_input": case["question"], "response": case["answer"], "retrieved_contexts": case["context"]}
    result = ragas.evaluate(
        schema.EvaluationDataset.from_list([row]),
        metrics=[faithfulness.Faithfulness()],
        llm=llms.LangchainLLMWrapper(model),
        run_config=config.RunConfig(timeout=TIMEOUT, max_retries=1, max_workers=1),
        show_progress=False,
    )
    return float(result.scores[0]["faithfulness"])


INTERFACES: dict[str, Callable[[str, dict[str, Any]], float]] = {"ragas": current, "ragas evaluate()": evaluate}


def main() -> None:
    """Write one row per case and interface: {peer, id, score, error}."""
    url, cases, out = sys.argv[1:]
    version = metadata.version("ragas")
    with Path(out).open("w", encoding="utf-8") as stream:
        for line in Path(cases).read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            for name, run in INTERFACES.items():
                row: dict[str, Any] = {"peer": name, "version": version, "id": case["id"], "score": None, "error": ""}
                try:
                    row["score"] = run(url, case)
                except Exception as error:  # noqa: BLE001 - how it fails is what is measured
                    row["error"] = f"{type(error).__name__}: {error}"[:300]
                stream.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
