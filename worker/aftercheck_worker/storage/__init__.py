"""Postgres, the only truth: tables, the ledger, results, totals, retention."""

from __future__ import annotations
