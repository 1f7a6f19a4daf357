"""The demo: a small RAG app against a loopback model, real telemetry, and labelled answers to compare with.

`rows` holds the labelled answers, `model` the stub of the model's API, `app` is the app itself: a program of its own
that knows nothing of the worker. Only `cli.demo` starts it.
"""

from __future__ import annotations
