"""Pure stages: frozen values in, frozen values out. `pipeline.py` strings them together."""

from __future__ import annotations
