"""Grafana as code: `python -m grafana` writes `grafana/dashboards/*.json` from `boards`.

`board` is what a dashboard is made of, `boards` all dashboards as data, `promql` their expressions, `render` the only
file that knows grafana-foundation-sdk.
"""
