"""Runs inside a virtual environment with TruLens: scores each case with its groundedness measure.

Usage: python trulens_peer.py URL CASES.jsonl OUT.jsonl; imports nothing of ours. A judge's reply that is run as code
is seen, because `os.system` is replaced by a counter.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

executed: list[str] = []


def record(command: object) -> int:
    """Stand in for `os.system`: nothing that a judge writes is really run."""
    executed.append(str(command))
    return 0


def score(url: str, case: dict[str, Any]) -> float:
    """`groundedness_measure_with_cot_reasons`; the model splits the sentences, since NLTK's data is a download."""
    providers: Any = importlib.import_module("trulens.providers.openai")
    feedback: Any = importlib.import_module("trulens.core.feedback.feedback")
    provider = providers.OpenAI(
        model_engine="gpt-4-turbo", base_url=f"{url}/trulens/{case['id']}/v1", api_key="x", max_retries=0, rpm=60_000
    )
    found, _ = provider.groundedness_measure_with_cot_reasons(
        source="\n".join(case["context"]),
        statement=case["answer"],
        groundedness_configs=feedback.GroundednessConfigs(use_sent_tokenize=False, filter_trivial_statements=True),
    )
    return float(found)


def main() -> None:
    """Write one row per case: {peer, id, score, error, executed}."""
    os.environ |= {"TRULENS_OTEL_TRACING": "0", "OPENAI_API_KEY": "x"}
    os.system = record
    url, cases, out = sys.argv[1:]
    version = metadata.version("trulens")
    with Path(out).open("w", encoding="utf-8") as stream:
        for line in Path(cases).read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            executed.clear()
            row: dict[str, Any] = {
                "peer": "trulens",
                "version": version,
                "id": case["id"],
                "score": None,
                "error": "",
            }
            try:
                row["score"] = score(url, case)
            except Exception as error:  # noqa: BLE001 - how it fails is what is measured
                row["error"] = f"{type(error).__name__}: {error}"[:300]
            stream.flush()
            stream.write(json.dumps({**row, "executed": list(executed)}) + "\n")


if __name__ == "__main__":
    main()
