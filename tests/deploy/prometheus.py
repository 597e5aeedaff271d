"""A real Prometheus that scrapes a service and evaluates our rules, with their times shortened."""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests
import yaml

from tests.service import ROOT, free_port

EXAMPLE = ROOT / "deploy" / "prometheus" / "prometheus.yaml"
RULES = ROOT / "deploy" / "helm" / "rme" / "monitoring"
INTERVAL = "5s"
FOR, WINDOW = "1s", "30s"
"""What each `for` and each window of minutes become: an alert is to fire in seconds."""
WAIT_SECONDS = 180.0
"""How long an alert may take on a busy machine."""


class Prometheus:
    """Asks a Prometheus which alerts fire."""

    def __init__(self, port: int, router_port: int) -> None:
        self.router_port = router_port
        """Where it looks for a router."""
        self.url = f"http://127.0.0.1:{port}/api/v1"

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire; of none while it does not answer."""
        try:
            found = requests.get(f"{self.url}/alerts", timeout=5).json()["data"]["alerts"]
        except requests.RequestException:
            return set()
        return {each["labels"]["alertname"] for each in found if each["state"] == "firing"}

    def wait_for(self, alert: str, *, fires: bool = True) -> None:
        """Wait until an alert fires, or does no more."""
        started = time.monotonic()
        while (alert in self.firing()) is not fires:
            assert time.monotonic() - started < WAIT_SECONDS, (alert, fires, self.firing())
            time.sleep(0.25)

    def wait_until_scraped(self) -> None:
        until = time.monotonic() + WAIT_SECONDS
        while not self._value('up{job="rme"} == 1'):
            assert time.monotonic() < until
            time.sleep(0.25)

    def series(self, expression: str, seconds: float) -> int:
        """Return how many series an expression has had in so many seconds until now."""
        now = time.time()
        asked = {"query": expression, "start": now - seconds, "end": now, "step": 5}
        answer = requests.get(f"{self.url}/query_range", asked, timeout=30).json()
        assert answer["status"] == "success", (expression, answer)
        return len(answer["data"]["result"])

    def _value(self, expression: str) -> list[object]:
        try:
            answer = requests.get(f"{self.url}/query", {"query": expression}, timeout=5)
            return list(answer.json()["data"]["result"])
        except requests.RequestException:  # a text while it starts
            return []


@contextmanager
def watching(target: int, folder: Path) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes a port while the block runs."""
    for name in ("recording.yaml", "alerts.yaml"):
        rules = re.sub(r"\bfor: \w+", f"for: {FOR}", (RULES / name).read_text())
        (folder / name).write_text(re.sub(r"\[[25]m\]", f"[{WINDOW}]", rules))
    config = yaml.safe_load(EXAMPLE.read_text())
    config["rule_files"] = ["recording.yaml", "alerts.yaml"]
    config["global"] = {"scrape_interval": INTERVAL, "evaluation_interval": "1s"}
    config["global"]["scrape_timeout"] = INTERVAL
    router_port = free_port()
    for scrape, port in zip(config["scrape_configs"], (target, router_port), strict=True):
        del scrape["authorization"]  # this machine needs no token
        scrape["static_configs"] = [{"targets": [f"127.0.0.1:{port}"]}]
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    port = free_port()
    options = [f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data"]
    options += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    process = subprocess.Popen(["prometheus", *options], cwd=folder)
    try:
        yield Prometheus(port, router_port)
    finally:
        process.terminate()
        process.wait(30)
