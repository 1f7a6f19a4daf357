"""Runs inside a virtual environment with DeepEval: scores each case with its faithfulness metric.

Usage: python deepeval_peer.py URL CASES.jsonl OUT.jsonl; imports nothing of ours.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any


def score(url: str, case: dict[str, Any]) -> float:
    """`FaithfulnessMetric` on a local endpoint, as its guide sets it up."""
    metrics: Any = importlib.import_module("deepeval.metrics")
    models: Any = importlib.import_module("deepeval.models")
    cases: Any = importlib.import_module("deepeval.test_case")
    model = models.LocalModel(model="judge", base_url=f"{url}/deepeval/{case['id']}/v1", api_key="x")
    metric = metrics.FaithfulnessMetric(model=model, include_reason=False, async_mode=False)
    metric.measure(
        cases.LLMTestCase(input=case["question"], actual_output=case["answer"], retrieval_context=case["context"]),
        _show_indicator=False,
    )
    return float(metric.score)


def main() -> None:
    """Write one row per case: {peer, id, score, error}."""
    os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_RETRY_MAX_ATTEMPTS": "1"}
    url, cases, out = sys.argv[1:]
    version = metadata.version("deepeval")
    with Path(out).open("w", encoding="utf-8") as stream:
        for line in Path(cases).read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            row: dict[str, Any] = {
                "peer": "deepeval",
                "version": version,
                "id": case["id"],
                "score": None,
                "error": "",
            }
            try:
                row["score"] = score(url, case)
            except Exception as error:  # noqa: BLE001 - how it fails is what is measured
                row["error"] = f"{type(error).__name__}: {error}"[:300]
            stream.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
