"""The demo's RAG app, as a user would write it: one `init` call, the `openai` client, a prompt with the passage.

`aftercheck demo` runs this file as a process of its own. It lies in a folder that is no package, and imports nothing
of the worker: the two sides meet only on the Redis stream (import rule 1). It reads rows as JSON lines from stdin and
writes one line {"id", "trace_id"} per answer to stdout; the last line is what `flush` says. Its one argument is the
name of the app.
"""

from __future__ import annotations

import json
import os
import sys

import openai
from traceloop.sdk.decorators import workflow

import aftercheck

SYSTEM = "Answer the question from the context only."


def main() -> None:
    """Answer every row of stdin."""
    aftercheck.init(sys.argv[1] if len(sys.argv) > 1 else "demo-rag")
    aftercheck.set_versions(prompt="demo-1", retriever="rows", corpus="demo")
    client = openai.OpenAI(base_url=os.environ["OPENAI_BASE_URL"], api_key="demo", max_retries=0, timeout=10)

    @workflow(name="answer")
    def answer(query: str, context: str) -> str | None:
        client.chat.completions.create(
            model="demo-model",
            temperature=0,
            messages=[
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": f"Context:\n{context}\n\nQuestion: {query}"},
            ],
        )
        return aftercheck.current_trace_id()

    for line in sys.stdin:
        row = json.loads(line)
        tell({"id": row["id"], "trace_id": answer(row["query"], row["context"])})
    left = aftercheck.flush(5)
    tell({"flushed": left.flushed, "left": left.left, "dropped": dict(left.dropped)})


def tell(line: dict[str, object]) -> None:
    """Write one line to whoever started us."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
