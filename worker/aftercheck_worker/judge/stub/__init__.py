"""A local judge without a model: an OpenAI-compatible endpoint to try the configuration, and to test against.

It validates every request as strictly as the prompts are written, so that a prompt that leaks is refused.
"""

from __future__ import annotations

from aftercheck_worker.judge.stub.generator import StubGenerator
from aftercheck_worker.judge.stub.modes import FAULTS, MODES, Mode, Stub

__all__ = ["FAULTS", "MODES", "Mode", "Stub", "StubGenerator"]
