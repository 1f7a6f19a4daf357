"""All dashboards. Order: what is wrong, why, and whether the fleet itself is well."""

from __future__ import annotations

from typing import Final

from grafana.board import Dashboard
from grafana.boards import cost, fatigue, overview, pipeline, quality, triad

DASHBOARDS: Final[tuple[Dashboard, ...]] = (
    overview.OVERVIEW,
    quality.QUALITY_BOARD,
    triad.TRIAD,
    fatigue.FATIGUE_BOARD,
    pipeline.PIPELINE,
    cost.COST,
)
