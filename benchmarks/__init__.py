"""Benchmarks: every module beside this one has `run() -> dict[str, float]`; `python -m benchmarks` drives them."""

from __future__ import annotations
