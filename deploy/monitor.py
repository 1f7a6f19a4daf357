"""`python -m deploy.monitor`: the shipped Prometheus rules and Alertmanager routing on this machine, without Docker.

Takes the shipped configuration, replaces addresses by loopback ones, and prints every alert that starts or ends and
every page. Without `--routing-key-file` the pages go to a stand-in for PagerDuty that refuses what PagerDuty refuses.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final

import yaml

from benchmarks._pagerduty import PagerDuty

ROOT: Final = Path(__file__).parents[1]
STAND_IN_KEY: Final = "0" * 32
TEMPLATES: Final = Path("/usr/share/prometheus/alertmanager/default.tmpl")
_MOUNT: Final = (
    'mount -t overlay overlay -o "lowerdir=$0:/usr/share" /usr/share 2> /dev/null'
    ' || mount --rbind "$0" /usr/share; exec "$@"'
)
POLL_SECONDS: Final = 2.0


def binaries() -> Path:
    """Folder of prometheus and alertmanager.

    Raises:
        SystemExit: 69, they are not there and cannot be fetched.
    """
    script = ROOT / "deploy/prometheus/binaries.sh"
    found = subprocess.run([script], capture_output=True, text=True, check=False)  # noqa: S603 - our own script
    if found.returncode:
        sys.stderr.write(found.stderr)
        raise SystemExit(69)
    return Path(found.stdout.strip())


def free_port() -> int:
    """A loopback port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def prometheus_config(exporter: str, alertmanager: str) -> str:
    """The shipped scrape configuration with our addresses, without node-exporter: it runs elsewhere or not at all."""
    found: Any = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    found["rule_files"] = [str(ROOT / "deploy/prometheus/rules/*.yml")]
    found["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] = [alertmanager]
    found["scrape_configs"] = [job for job in found["scrape_configs"] if job["job_name"] == "aftercheck"]
    found["scrape_configs"][0]["static_configs"][0]["targets"] = [exporter]
    return yaml.safe_dump(found)


def alertmanager_config(key_file: Path, url: str) -> str:
    """The shipped routing with our key file and, for the stand-in, its address."""
    found: Any = yaml.safe_load((ROOT / "deploy/alertmanager/alertmanager.yml").read_text())
    for receiver in found["receivers"]:
        for settings in receiver.get("pagerduty_configs", []):
            settings["routing_key_file"] = str(key_file)
            if url:
                settings["url"] = url
    return yaml.safe_dump(found)


def commands(home: Path, folder: Path, ports: Mapping[str, int]) -> dict[str, list[str]]:
    """Command lines of both servers."""
    alertmanager = folder / "prometheus-alertmanager"
    serving = [
        str(alertmanager if alertmanager.exists() else folder / "alertmanager"),
        f"--config.file={home / 'alertmanager.yml'}",
        f"--storage.path={home / 'alerts'}",
        f"--web.listen-address=127.0.0.1:{ports['alertmanager']}",
        "--cluster.listen-address=",
    ]
    if alertmanager.exists() and not TEMPLATES.exists():
        # Debian's Alertmanager reads its templates from /usr/share only: where the package is unpacked and not
        # installed, it gets a mount namespace in which they are there.
        share = str(folder.parent / "share")
        serving = ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNT, share, *serving]
    return {
        "prometheus": [
            str(folder / "prometheus"),
            f"--config.file={home / 'prometheus.yml'}",
            f"--storage.tsdb.path={home / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{ports['prometheus']}",
        ],
        "alertmanager": serving,
    }


def environ(service: str) -> dict[str, str]:
    """Our environment with what compose.yml sets for the service; what is set already wins."""
    compose: Any = yaml.safe_load((ROOT / "deploy/compose.yml").read_text())
    shipped: dict[str, str] = compose["services"][service].get("environment") or {}
    return {**shipped, **os.environ}


@contextlib.contextmanager
def servers(home: Path, ports: Mapping[str, int]) -> Generator[dict[str, subprocess.Popen[bytes]]]:
    """Run both until the block ends. Their logs are in `home`.

    Raises:
        TimeoutError: one does not get ready.
    """
    running: dict[str, subprocess.Popen[bytes]] = {}
    with contextlib.ExitStack() as stack:
        try:
            for name, command in commands(home, binaries(), ports).items():
                log = stack.enter_context((home / f"{name}.log").open("wb"))
                running[name] = subprocess.Popen(  # noqa: S603
                    command, env=environ(name), stdout=log, stderr=log, start_new_session=True
                )
            for name, process in running.items():
                _ready(f"http://127.0.0.1:{ports[name]}/-/ready", process, home / f"{name}.log")
            yield running
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(15)
                if process.poll() is None:
                    process.kill()
                    process.wait()


def _ready(url: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):  # noqa: S310 - loopback
            return
        if process.poll() is not None or time.monotonic() > deadline:
            last = (log.read_text("utf-8", "replace").splitlines() or ["it wrote nothing"])[-1]
            raise TimeoutError(f"{url} does not answer: {last[:300]}")
        time.sleep(0.2)


def firing(prometheus: str) -> dict[tuple[str, str], str]:
    """Alerts that fire now: (name, app) -> summary."""
    with urllib.request.urlopen(f"{prometheus}/api/v1/alerts", timeout=5) as reply:  # noqa: S310 - loopback
        found: Any = json.load(reply)["data"]["alerts"]
    return {
        (alert["labels"]["alertname"], alert["labels"].get("app", "")): alert["annotations"]["summary"]
        for alert in found
        if alert["state"] == "firing"
    }


class Watcher:
    """Prints what changes: alerts that start and end, pages that PagerDuty's stand-in got."""

    def __init__(self, say: Callable[[str], None], pager: PagerDuty | None) -> None:
        self._say, self._pager = say, pager
        self._known: dict[tuple[str, str], str] = {}
        self._events = self._refused = 0

    def look(self, now: Mapping[tuple[str, str], str]) -> None:
        """Compare with the last look."""
        for key in now.keys() - self._known.keys():
            self._say(f"FIRING    {' '.join(filter(None, key))}: {now[key]}")
        for key in self._known.keys() - now.keys():
            self._say(f"over      {' '.join(filter(None, key))}")
        self._known = dict(now)
        if self._pager is None:
            return
        for event in self._pager.events[self._events :]:
            payload = event.body.get("payload", {})
            about = f"{payload.get('severity', '')} {payload.get('class', '')} {payload.get('component', '')}".strip()
            self._say(f"PAGERDUTY {event.action:<8} {about or '(same incident)'}, dedup_key {event.dedup_key[:12]}")
            links: list[dict[str, str]] = event.body.get("links") or [] if event.action == "trigger" else []
            for link in links:
                self._say(f"          {link['text']}: {link['href']}")
        self._events = len(self._pager.events)
        for why in self._pager.refused[self._refused :]:
            self._say(f"PAGERDUTY refused: {why}")
        self._refused = len(self._pager.refused)


def run(chosen: argparse.Namespace, stop: threading.Event, say: Callable[[str], None]) -> None:
    """Serve and watch until `stop` is set."""
    home = Path(chosen.home)
    home.mkdir(parents=True, exist_ok=True)
    ports = {"prometheus": chosen.prometheus_port, "alertmanager": chosen.alertmanager_port}
    key = Path(chosen.routing_key_file) if chosen.routing_key_file else home / "stand-in.key"
    with contextlib.ExitStack() as stack:
        pager = None if chosen.routing_key_file else stack.enter_context(PagerDuty())
        if pager is not None:
            key.write_text(STAND_IN_KEY)
        (home / "prometheus.yml").write_text(
            prometheus_config(chosen.exporter, f"127.0.0.1:{ports['alertmanager']}"), encoding="utf-8"
        )
        (home / "alertmanager.yml").write_text(
            alertmanager_config(key.resolve(), pager.url if pager else ""), encoding="utf-8"
        )
        running = stack.enter_context(servers(home.resolve(), ports))
        prometheus = f"http://127.0.0.1:{ports['prometheus']}"
        say(f"Prometheus {prometheus}/alerts, Alertmanager http://127.0.0.1:{ports['alertmanager']}")
        say(f"It scrapes {chosen.exporter} every 5 s. Ctrl-C stops both.")
        watcher = Watcher(say, pager)
        while not stop.wait(POLL_SECONDS):
            for name, process in running.items():
                if process.poll() is not None:
                    raise RuntimeError(f"{name} ended with {process.returncode}: see {home / name}.log")
            with contextlib.suppress(OSError):
                watcher.look(firing(prometheus))


def main() -> None:
    """Read the options, run until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m deploy.monitor", description=__doc__)
    parser.add_argument("--exporter", default="127.0.0.1:9464", help="host:port of `aftercheck exporter`")
    parser.add_argument("--prometheus-port", type=int, default=9090)
    parser.add_argument("--alertmanager-port", type=int, default=9093)
    parser.add_argument("--routing-key-file", default="", help="your PagerDuty integration key: real pages")
    parser.add_argument("--home", default=".aftercheck/monitor", help="folder of configuration, data and logs")
    stop, began = threading.Event(), time.monotonic()

    def end(number: int, frame: FrameType | None) -> None:
        _ = number, frame
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)

    def say(text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - began:6.0f} s  {text}\n")
        sys.stdout.flush()

    run(parser.parse_args(), stop, say)


if __name__ == "__main__":
    main()
