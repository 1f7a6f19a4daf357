"""Serves a GGUF model on a free loopback port: `python serve.py MODEL.gguf`. Prints the base URL; ends with stdin."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any


def main() -> None:
    """Load the model and wait until stdin closes."""
    llama: Any = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = sys.argv[1]
    params.n_ctx = 8192
    params.n_parallel = 1
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.verbosity = 0
    # Threads wait for one another at every layer: on a shared machine fewer of them are faster.
    params.cpuparams.n_threads = int(os.environ.get("AFTERCHECK_TEST_THREADS", "0")) or os.cpu_count() or 1
    params.cpuparams_batch.n_threads = params.cpuparams.n_threads
    server = llama.Server(params)
    sys.stdout.write(f"{server.listening_address}/v1\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
