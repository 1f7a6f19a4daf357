"""The link in a page to PagerDuty: from the shipped rule, by Alertmanager's own templates, opened in a browser."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest
import yaml
from playwright.sync_api import Page

from tests.integration.oncall import promtool

pytestmark = pytest.mark.browser

DEPLOY = Path(__file__).parents[2] / "deploy"
APP = "Q&A: shop #1"


def annotated() -> str:
    """`traces_url` of FaithfulnessLow as Prometheus fills it for `APP`."""
    rules: Any = yaml.safe_load((DEPLOY / "prometheus/rules/aftercheck.yml").read_text())
    found = next(
        rule for group in rules["groups"] for rule in group["rules"] if rule.get("alert") == "FaithfulnessLow"
    )
    url = str(found["annotations"]["traces_url"])
    assert "{{ $labels.app | urlquery }}" in url
    return url.replace("{{ $labels.app | urlquery }}", quote_plus(APP))


def rendered(folder: Path, began: datetime) -> str:
    """The link that Alertmanager sends."""
    config: Any = yaml.safe_load((DEPLOY / "alertmanager/alertmanager.yml").read_text())
    pager = next(one for one in config["receivers"] if one["name"] == "pagerduty")["pagerduty_configs"][0]
    template = next(link["href"] for link in pager["links"] if link["text"] == "Traces")
    shared = {"commonAnnotations": {"traces_url": annotated()}, "commonLabels": {"alertname": "FaithfulnessLow"}}
    alert: dict[str, object] = {"status": "firing", "startsAt": began.isoformat(), "labels": {}, "annotations": {}}
    data = folder / "alert.json"
    data.write_text(json.dumps({"status": "firing", "groupLabels": {}, **shared, "alerts": [alert]}))
    amtool = [str(promtool.binaries() / "amtool"), "template", "render", "--template.glob=/dev/null"]
    done = subprocess.run(
        [*amtool, f"--template.text={template}", f"--template.data={data}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.req("U30", "U42")
def test_the_link_of_a_page_leads_to_what_the_alert_saw(
    browse: Callable[..., Page], store: Callable[..., str], tmp_path: Path
) -> None:
    store(app=APP)
    began = datetime.now(UTC) - timedelta(minutes=20)
    url = rendered(tmp_path, began)
    page = browse(re.sub("^http://localhost:8080", "", url))
    assert page.url.partition("?")[0].endswith("/ui/incidents")
    head = page.locator("main > p").first.inner_text()
    assert head.startswith("FaithfulnessLow (runbook) · app " + APP)
    assert f"{began - timedelta(minutes=30):%Y-%m-%d %H:%M}" in head
    assert page.get_by_role("link", name="It includes support.").is_visible()
