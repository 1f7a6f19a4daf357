"""Model back ends behind the Protocols of `base`."""

from __future__ import annotations
