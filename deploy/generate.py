"""`python deploy/generate.py`: write rules, Grafana-managed alerts, alert reference and runbooks from one source.

The source is `aftercheck_worker.oncall`. A test fails when a file is not what this writes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import yaml

from aftercheck_worker.oncall import ALERTS, RECORDINGS, Alert
from aftercheck_worker.oncall.catalogue import FLEET, QUALITY

ROOT: Final = Path(__file__).parents[1]
NOTE: Final = "Written by deploy/generate.py; do not edit."
INTERVAL: Final = "5s"
"""Evaluation interval: the scrape interval of the exporter, whose values change every 5 s."""
GRAFANA: Final = "http://localhost:3000"
PAGES: Final = "http://localhost:8080"


class Links:
    """Where annotations point. Override with the generator's options for your own addresses.

    Args:
        grafana: base URL of Grafana.
        pages: base URL of aftercheck's own pages (traces).
        runbooks: base URL of the folder docs/runbooks as your readers see it.
    """

    def __init__(self, grafana: str = GRAFANA, pages: str = PAGES, runbooks: str = f"{PAGES}/docs/runbooks") -> None:
        self.grafana, self.pages, self.runbooks = grafana, pages, runbooks

    def annotations(self, alert: Alert) -> dict[str, str]:
        """Summary, description and the three links of an alert."""
        app = "{{ $labels.app | urlquery }}"  # Go's own: an app may be called "Q&A"
        return {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": f"{self.runbooks}/{alert.name}",
            "dashboard_url": f"{self.grafana}/d/{alert.dashboard}?var-app={app}",
            "traces_url": f"{self.pages}/traces?app={app}&flagged=true&window=30m",
        }


def labels(alert: Alert) -> dict[str, str]:
    """Routing labels; `severity` becomes PagerDuty's payload.severity."""
    return {"severity": alert.severity, "service": "aftercheck", "team": "oncall", "page": str(alert.page).lower()}


def prometheus(alerts: Iterable[Alert], links: Links) -> list[dict[str, object]]:
    """Alerts as Prometheus writes them."""
    found: list[dict[str, object]] = []
    for alert in alerts:
        rule: dict[str, object] = {"alert": alert.name, "expr": alert.expr}
        if alert.hold != "0s":
            rule["for"] = alert.hold
        if alert.keep != "0s":
            rule["keep_firing_for"] = alert.keep
        found.append({**rule, "labels": labels(alert), "annotations": links.annotations(alert)})
    return found


def rules(links: Links) -> str:
    """The rule file: recordings and quality alerts in one group, so that one evaluation sees one set of values."""
    recorded = [{"record": rule.record, "expr": rule.expr} for rule in RECORDINGS]
    quality = prometheus((alert for alert in QUALITY if alert.enabled), links)
    fleet = prometheus((alert for alert in FLEET if alert.enabled), links)
    groups = [
        {"name": "aftercheck-quality", "interval": INTERVAL, "rules": [*recorded, *quality]},
        {"name": "aftercheck-fleet", "interval": "15s", "rules": fleet},
    ]
    return dump({"groups": groups})


def disabled(links: Links) -> str:
    """Rules that ship switched off: no configuration of ours loads this file."""
    off = prometheus((alert for alert in ALERTS if not alert.enabled), links)
    return dump({"groups": [{"name": "aftercheck-literal", "interval": INTERVAL, "rules": off}]})


def grafana(links: Links) -> str:
    """The same alerts for Grafana-managed alerting, paused: the Prometheus rules are on, and one page is enough."""
    found: list[dict[str, object]] = []
    for alert in ALERTS:
        query = {
            "refId": "A",
            "relativeTimeRange": {"from": 600, "to": 0},
            "datasourceUid": "prometheus",
            "model": {"refId": "A", "expr": alert.expr, "instant": True, "range": False},
        }
        # Any sample is an alert, whatever its value: the comparison stands in the expression.
        fired = {
            "refId": "B",
            "relativeTimeRange": {"from": 600, "to": 0},
            "datasourceUid": "__expr__",
            "model": {"refId": "B", "type": "math", "expression": "is_number($A) || is_inf($A)"},
        }
        texts = {key: text.replace("$value", "$values.A.Value") for key, text in links.annotations(alert).items()}
        found.append(
            {
                "uid": f"aftercheck-{alert.name.lower()}",
                "title": alert.name,
                "condition": "B",
                "data": [query, fired],
                "noDataState": "OK",
                "execErrState": "Error",
                "for": alert.hold,
                "isPaused": True,
                "labels": labels(alert),
                "annotations": texts,
            }
        )
    group = {"orgId": 1, "name": "aftercheck", "folder": "aftercheck", "interval": "10s", "rules": found}
    return dump({"apiVersion": 1, "groups": [group]})


def dump(document: Mapping[str, object]) -> str:
    """YAML under a note."""
    text: str = yaml.safe_dump(document, sort_keys=False, width=110, allow_unicode=True)
    return f"# {NOTE}\n{text}"


def reference() -> str:
    """docs/reference/alerts.md."""
    text = f"<!-- {NOTE} -->\n\n# Alerts\n\n"
    text += (
        "Rules: `deploy/prometheus/rules/aftercheck.yml`, evaluated every 5 s. The Grafana-managed copies in\n"
        "`grafana/provisioning/alerting/` are paused: switch on one of the two, never both.\n"
        'Quality alerts read production answers of `quality="standard"` only. No data fires nothing but\n'
        "EvaluationStalled and ExporterDown. The literal rule of R27 ships disabled, in\n"
        "`deploy/prometheus/disabled/literal.yml`.\n\n"
        "| alert | severity | goes to | for | keeps firing | fires when |\n|---|---|---|---|---|---|\n"
    )
    for alert in ALERTS:
        target = "PagerDuty" if alert.page else "ticket"
        state = "" if alert.enabled else " (disabled)"
        row = f"[{alert.name}](../runbooks/{alert.name}.md){state}", alert.severity, target, alert.hold, alert.keep
        text += f"| {' | '.join(row)} | {alert.meaning} |\n"
    text += "\n## Recorded values\n\n| name | expression |\n|---|---|\n"
    for rule in RECORDINGS:
        text += f"| `{rule.record}` | `{rule.expr.replace('|', chr(92) + '|')}` |\n"
    return text


def runbook(alert: Alert) -> str:
    """docs/runbooks/<alert>.md."""
    lines = [f"<!-- {NOTE} -->", "", f"# {alert.name}", "", alert.meaning, ""]
    lines += [f"Severity `{alert.severity}`, {'a page' if alert.page else 'a ticket'}.", alert.description, ""]
    lines += ["## Likely causes", "", *(f"- {cause}" for cause in alert.causes), ""]
    lines += ["## What to do", "", *(f"{n}. {action}" for n, action in enumerate(alert.actions, 1)), ""]
    lines += ["## Expression", "", "```promql", alert.expr, "```", ""]
    return "\n".join(lines)


def files(links: Links) -> dict[str, str]:
    """Every generated file by its path in the repository."""
    return {
        "deploy/prometheus/rules/aftercheck.yml": rules(links),
        "deploy/prometheus/disabled/literal.yml": disabled(links),
        "grafana/provisioning/alerting/aftercheck.yml": grafana(links),
        "docs/reference/alerts.md": reference(),
        **{f"docs/runbooks/{alert.name}.md": runbook(alert) for alert in ALERTS},
    }


def main() -> None:
    """Write all files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grafana-url", default=GRAFANA)
    parser.add_argument("--pages-url", default=PAGES)
    parser.add_argument("--runbooks-url", default=f"{PAGES}/docs/runbooks")
    chosen = parser.parse_args()
    for name, text in files(Links(chosen.grafana_url, chosen.pages_url, chosen.runbooks_url)).items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
