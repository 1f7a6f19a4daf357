"""Quality benchmark: the real pipeline on labelled sets, one protocol for all (R40, R56).

A public benchmark is a baseline, not a release certificate, and no threshold is universal.
"""

from __future__ import annotations
