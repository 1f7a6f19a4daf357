"""The container files agree with the code. Docker itself does not run here: schema and cross-checks stand for it."""

from __future__ import annotations

import re
import stat
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import jsonschema_rs
import msgspec
import pytest
import yaml

from aftercheck_worker.cli import application
from aftercheck_worker.settings import Settings, load

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
COMPOSE: Any = yaml.safe_load((DEPLOY / "compose.yml").read_text())
GPU: Any = yaml.safe_load((DEPLOY / "compose.gpu.yml").read_text())
DOCKERFILE = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
CORE = {"redis", "postgres", "aftercheck"}
MONITORING = {"prometheus", "alertmanager", "grafana", "node-exporter"}


def instructions(word: str) -> list[str]:
    return re.findall(rf"^{word} +(.*)$", DOCKERFILE, re.MULTILINE)


def image_environment() -> dict[str, str]:
    pairs = (pair for line in instructions("ENV") for pair in line.split())
    return dict(cast("tuple[str, str]", tuple(pair.split("=", 1))) for pair in pairs)


def commands() -> set[str]:
    app = application.build()
    names = [info.name or getattr(info.callback, "__name__", "") for info in app.registered_commands]
    return {*names, *(str(group.name) for group in app.registered_groups)}


def shown(value: object) -> str:
    """A value as compose passes it: defaults of ${NAME:-default} filled in."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(value))


def bind_mounts() -> Iterator[tuple[str, str, str]]:
    for name, service in COMPOSE["services"].items():
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            yield name, source, target


@pytest.mark.parametrize("name", ["compose.yml", "compose.gpu.yml"])
def test_the_files_keep_the_compose_schema(name: str) -> None:
    schema: Any = msgspec.json.decode((Path(__file__).parent / "compose-spec.json").read_bytes())
    document: Any = yaml.safe_load((DEPLOY / name).read_text())

    validator = jsonschema_rs.validator_for(schema)
    assert [error.message for error in validator.iter_errors(document)] == []
    # and the schema does refuse
    assert not validator.is_valid({"services": {"redis": {"image": 7}}})


def test_three_services_and_a_monitoring_profile() -> None:
    profiles = {name: service.get("profiles", []) for name, service in COMPOSE["services"].items()}
    assert {name for name, found in profiles.items() if not found} == CORE
    assert {name for name, found in profiles.items() if found == ["monitoring"]} == MONITORING
    assert set(GPU["services"]) <= CORE


def test_the_fleet_runs_a_command_that_exists_with_settings_that_exist() -> None:
    fleet = COMPOSE["services"]["aftercheck"]
    assert fleet["command"][0] in commands()
    assert yaml.safe_load(instructions("CMD")[-1])[0] in commands()
    assert yaml.safe_load(instructions("ENTRYPOINT")[-1]) == ["aftercheck"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert "aftercheck" in scripts
    ours = {**image_environment(), **fleet["environment"]}
    values = {name: shown(value) for name, value in ours.items() if name.startswith(("AFTERCHECK_", "REDIS_"))}
    found = load(values)  # refuses what nobody reads, and values out of range
    assert found.api_host == found.exporter_host == "0.0.0.0"
    assert found.redis_url is not None


def test_the_ports_are_those_of_the_settings_and_stay_on_this_machine() -> None:
    defaults = Settings.model_fields
    ours = {defaults["api_port"].default, defaults["exporter_port"].default}
    assert {int(port) for line in instructions("EXPOSE") for port in line.split()} == ours
    assert f":{defaults['exporter_port'].default}/livez" in instructions("HEALTHCHECK")[0]
    for name, service in COMPOSE["services"].items():
        for published in service.get("ports", []):
            address, outside, inside = published.split(":")
            assert (address, outside) == ("127.0.0.1", inside), name
    fleet = {int(published.rsplit(":", 1)[1]) for published in COMPOSE["services"]["aftercheck"]["ports"]}
    assert fleet == ours


@pytest.mark.parametrize("path", ["prometheus/prometheus.yml", "alertmanager/alertmanager.yml"])
def test_addresses_in_the_monitoring_are_services(path: str) -> None:
    text = (DEPLOY / path).read_text()
    hosts = set(re.findall(r'targets: \["([a-z-]+):\d+"', text))
    assert hosts <= set(COMPOSE["services"])
    if "scrape_configs" in text:
        assert hosts == {"alertmanager", "aftercheck", "node-exporter"}
        assert f"aftercheck:{Settings.model_fields['exporter_port'].default}" in text


def test_every_path_is_in_the_repository_and_every_name_is_declared() -> None:
    for name, source, _ in bind_mounts():
        if source.startswith("."):
            assert (DEPLOY / source).is_dir(), f"{name}: {source}"
        elif not source.startswith("/"):
            assert source in COMPOSE["volumes"], f"{name}: {source}"
    for name, service in COMPOSE["services"].items():
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"]), name
        assert set(service.get("depends_on", [])) <= set(COMPOSE["services"]), name
    build = COMPOSE["services"]["aftercheck"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
    stages = set(re.findall(r"^FROM \S+ AS (\S+)", DOCKERFILE, re.MULTILINE))
    assert {build["target"], GPU["services"]["aftercheck"]["build"]["target"]} <= stages


def test_files_named_in_commands_are_mounted_there() -> None:
    for name in ("prometheus", "alertmanager"):
        service = COMPOSE["services"][name]
        config = next(word.split("=", 1)[1] for word in service["command"] if word.startswith("--config.file="))
        source = next(s for n, s, target in bind_mounts() if n == name and Path(config).parent == Path(target))
        assert (DEPLOY / source / Path(config).name).is_file()
    key = re.findall(r"routing_key_file: (\S+)", (DEPLOY / "alertmanager/alertmanager.yml").read_text())
    assert key == [f"/run/secrets/{name}" for name in COMPOSE["services"]["alertmanager"]["secrets"]]


def test_secrets_come_by_file_and_never_by_value() -> None:
    for name, service in COMPOSE["services"].items():
        declared = service.get("secrets", [])
        for variable, value in service.get("environment", {}).items():
            if "PASSWORD" in variable or "DATABASE_URL" in variable:
                assert variable.endswith("_FILE"), f"{name}: {variable}"
                assert value.removeprefix("/run/secrets/") in declared
    assert "/deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_image_copies_what_the_build_needs_and_nothing_else() -> None:
    copied = {word for line in instructions("COPY") if "--from" not in line for word in line.split()[:-1]}
    assert all((ROOT / path).exists() for path in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {path.split("/")[0] for path in wheel["packages"]} | set(wheel["force-include"])
    needed |= {project["project"]["readme"], *project["project"]["license-files"], "pyproject.toml"}
    assert needed <= copied
    kept = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line[0] == "!"}
    assert kept == copied
    extras = set(project["project"]["optional-dependencies"])
    asked = {name for group in re.findall(r"'\.\[([\w,]+)\]'", DOCKERFILE) for name in group.split(",")}
    assert asked == {"worker", "gpu"} <= extras


@pytest.mark.req("S20")
def test_the_fleet_runs_as_nobody_special_on_a_read_only_root() -> None:
    assert instructions("USER") == ["10001"]
    fleet = COMPOSE["services"]["aftercheck"]
    assert fleet["read_only"]
    assert fleet["cap_drop"] == ["ALL"]
    assert fleet["security_opt"] == ["no-new-privileges:true"]
    home = image_environment()["AFTERCHECK_HOME"]
    assert f"home:{home}" in fleet["volumes"]
    assert instructions("VOLUME") == [home]


def test_grafana_managed_alerts_are_not_mounted() -> None:
    assert not [source for _, source, _ in bind_mounts() if "alerting" in source or source.endswith("provisioning")]


def run_secrets(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ: Mapping[str, str] = {"PATH": "/usr/bin:/bin", "AFTERCHECK_SECRETS_DIR": str(folder)}
    return subprocess.run(
        [str(DEPLOY / "secrets.sh"), *arguments], env=environ, capture_output=True, text=True, timeout=20, check=True
    )


def test_secrets_are_made_once_and_fit_together(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    assert "no PagerDuty key" in run_secrets(folder).stderr
    names = {Path(secret["file"]).name for secret in COMPOSE["secrets"].values()}
    assert {path.name for path in folder.iterdir()} == names
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    first = {path.name: path.read_text() for path in folder.iterdir()}
    found = load({"DATABASE_URL_FILE": str(folder / "database_url")})
    assert found.database_url is not None
    assert found.database_url.get_secret_value().startswith(
        f"postgresql://aftercheck:{first['postgres_password']}@postgres:"
    )
    environment = COMPOSE["services"]["postgres"]["environment"]
    assert (environment["POSTGRES_USER"], environment["POSTGRES_DB"]) == ("aftercheck", "aftercheck")

    (tmp_path / "key").write_text("0123456789abcdef0123456789abcdef\n")
    assert run_secrets(folder, str(tmp_path / "key")).stderr == ""
    second = {path.name: path.read_text() for path in folder.iterdir()}
    assert second == {**first, "pagerduty_routing_key": "0123456789abcdef0123456789abcdef"}


def test_the_how_to_names_files_services_profiles_and_commands_that_exist() -> None:
    page = (ROOT / "docs/how-to/deploy.md").read_text()
    lines = re.findall(r"^docker compose (.+?)(?: +#.*)?$", page, re.MULTILINE)
    assert len(lines) >= 4
    for line in lines:
        words = line.split()
        assert all((ROOT / words[n + 1]).is_file() for n, word in enumerate(words) if word == "--file")
        profiles = {words[n + 1] for n, word in enumerate(words) if word == "--profile"}
        assert profiles <= {"monitoring"}
        if "run" in words:
            service, command = words[words.index("--rm") + 1 : words.index("--rm") + 3]
            assert service in COMPOSE["services"]
            assert command in commands()
    settings = {f"AFTERCHECK_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"AFTERCHECK_[A-Z_]+", page)) <= settings
