"""The Kubernetes files agree with the code; where kubectl is at hand they are built too. No cluster runs here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from aftercheck_worker.settings import Settings, load
from aftercheck_worker.supervise import GRACE_MARGIN_SECONDS
from tests.unit.deploy.test_compose import DOCKERFILE, commands

FOLDER = Path(__file__).parents[3] / "deploy/kustomize"
BASE: Any = yaml.safe_load((FOLDER / "base/kustomization.yaml").read_text())
FILES: list[Any] = [
    document for name in BASE["resources"] for document in yaml.safe_load_all((FOLDER / "base" / name).read_text())
]
PODS: dict[str, Any] = {
    one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in FILES if one["kind"] == "Deployment"
}
CONTAINERS: list[Any] = [
    container for pod in PODS.values() for container in [*pod["containers"], *pod.get("initContainers", [])]
]


def test_every_container_runs_a_command_with_settings_that_exist() -> None:
    shared = dict(literal.split("=", 1) for literal in BASE["configMapGenerator"][0]["literals"])
    for container in CONTAINERS:
        assert container["args"][0] in commands()
        own = {one["name"]: one["value"] for one in container.get("env", [])}
        given = {name: value for name, value in {**shared, **own}.items() if not name.endswith("_URL_FILE")}
        load({**given, "AFTERCHECK_API_HOST": "0.0.0.0"})  # refuses what nobody reads
        assert {name for name in shared if name.endswith("_URL_FILE")} == {"DATABASE_URL_FILE", "REDIS_URL_FILE"}


@pytest.mark.req("P10")
def test_a_worker_has_the_time_to_finish_its_batch() -> None:
    shared = dict(literal.split("=", 1) for literal in BASE["configMapGenerator"][0]["literals"])
    grace = int(shared["AFTERCHECK_TASK_TIME_LIMIT"]) + GRACE_MARGIN_SECONDS
    assert PODS["aftercheck-worker"]["terminationGracePeriodSeconds"] > grace


def test_probes_ask_ports_and_files_that_exist() -> None:
    (worker,) = PODS["aftercheck-worker"]["containers"]
    (heartbeat,) = [one["value"] for one in worker["env"] if one["name"] == "AFTERCHECK_HEARTBEAT_FILE"]
    for probe in ("startupProbe", "livenessProbe"):
        assert heartbeat in " ".join(worker[probe]["exec"]["command"])
    ports = {"aftercheck-exporter": "exporter_port", "aftercheck-page": "api_port"}
    for name, field in ports.items():
        (container,) = PODS[name]["containers"]
        assert container["ports"][0]["containerPort"] == Settings.model_fields[field].default
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    services = {one["metadata"]["name"]: one["spec"] for one in FILES if one["kind"] == "Service"}
    for name, service in services.items():
        assert service["selector"] == {"app.kubernetes.io/name": name}
        assert service["ports"][0]["targetPort"] == PODS[name]["containers"][0]["ports"][0]["name"]


def test_nothing_runs_as_root_or_writes_to_its_root() -> None:
    for pod in PODS.values():
        assert pod["securityContext"]["runAsUser"] == 10001
        assert f"--uid {pod['securityContext']['runAsUser']} " in DOCKERFILE
    for container in CONTAINERS:
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"]
        assert not security["allowPrivilegeEscalation"]
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert {"/var/lib/aftercheck", "/tmp"} <= {mount["mountPath"] for mount in container["volumeMounts"]}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_both_build_and_only_the_worker_gets_the_gpu() -> None:
    built: dict[str, list[Any]] = {}
    for name in ("base", "overlays/gpu"):
        done = subprocess.run(
            ["kubectl", "kustomize", str(FOLDER / name)], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        built[name] = list(yaml.safe_load_all(done.stdout))
    images = {
        one["metadata"]["name"]: one["spec"]["template"]["spec"]["containers"][0]["image"]
        for one in built["overlays/gpu"]
        if one["kind"] == "Deployment"
    }
    assert images == {
        "aftercheck-worker": "aftercheck:gpu",
        "aftercheck-exporter": "aftercheck:cpu",
        "aftercheck-page": "aftercheck:cpu",
    }
    assert [one["kind"] for one in built["base"]].count("Deployment") == 3
