"""Reads the gauges of a running exporter, as Prometheus would."""

from __future__ import annotations

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

SHOWN = (
    "aftercheck_faithfulness_ratio",
    "aftercheck_hallucination_ratio",
    "aftercheck_window_evaluations",
)


def gauges(url: str, app: str, names: tuple[str, ...] = SHOWN) -> dict[str, float]:
    """Scrape `url` and return the named series of one app; empty while there are none.

    Raises:
        OSError: nobody answers there.
    """
    with urllib.request.urlopen(url, timeout=2) as response:  # noqa: S310 - loopback
        text = response.read().decode()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        if family.name not in names:
            continue
        for sample in family.samples:
            if sample.labels.get("app") == app:
                labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()) if value)
                found[f"{sample.name}{{{labels}}}"] = sample.value
    return found
