"""The exporter's process stays small: it loads its own command, and no library of another role."""

from __future__ import annotations

import json
import subprocess
import sys

HEAVY = {
    "alembic",
    "celery",
    "fastapi",
    "kombu",
    "numpy",
    "onnxruntime",
    "openai",
    "rich",
    "sqlalchemy",
    "tokenizers",
    "uvicorn",
}
LOAD = """
import importlib, json, sys
from aftercheck_worker.cli import application
application.build("exporter")
importlib.import_module("aftercheck_worker.exporter")
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_the_exporter_loads_no_library_of_another_role() -> None:
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(json.loads(done.stdout))

    assert "prometheus_client" in loaded
    assert loaded & HEAVY == set()
