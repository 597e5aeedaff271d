"""From nothing to the first message by the commands and health checks of compose.yaml, in
containers that are made by hand: `make test-deploy`.
"""

import json
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import requests

from rme.celery import QUEUES
from rme.key_files import Keys
from rme.run.engines import Postgres, Valkey
from rme.run.places import UNPRIVILEGED, sockets
from tests.deploy import container
from tests.deploy.container import ENGINES, SERVICES, Container
from tests.service import data_folder, free_port

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not container.can_be_made(),
        reason="mount namespaces need root, and a checkout that all may read",
    ),
]

RIGHTS = """
import json, os
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
def may_write(folder):
    try:
        open(os.path.join(folder, "trial"), "w").close()
    except OSError as error:
        return error.strerror
    return "yes"
print(json.dumps({
    "user": os.getuid(), "groups": os.getgroups(), "capabilities": int(status["CapBnd"], 16),
    "no_new_privileges": int(status["NoNewPrivs"]),
    **{folder: may_write(folder) for folder in (".", "/etc", "/var/tmp", "/tmp", "/var/lib/rme")},
}))
"""
START_SECONDS = 120


@dataclass
class Deployment:
    containers: Container
    port: int
    log: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def env(self):
        return {
            "PORT": str(self.port),
            "BASE_URL": f"http://127.0.0.1:{self.port}",
            "WORKER_CONCURRENCY": "2",
        }

    def run(self, name, *arguments):
        return self.containers.run(name, list(arguments), **self.env)

    def start(self, name):
        log = self.log / f"{name}.log"
        self.processes[name] = self.containers.start(name, log, **self.env)

    def is_healthy(self, name):
        assert self.processes[name].poll() is None, (self.log / f"{name}.log").read_text()
        return self.containers.is_healthy(name, **self.env)

    def memory(self, name):
        """Return the memory of a service's processes in MiB; what they share counts once."""
        first = psutil.Process(self.processes[name].pid)
        tree = [first, *first.children(recursive=True)]
        return len(tree), sum(each.memory_full_info().pss for each in tree) >> 20

    def stop(self, name):
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)
        return process.wait(int(SERVICES[name].get("stop_grace_period", "10s").rstrip("s")))


@pytest.fixture(scope="module")
def deployment():
    with data_folder() as var, ExitStack() as stack:
        for engine in (Postgres(var, ephemeral=True), Valkey(var)):
            engine.start()
            stack.callback(engine.stop)
        (sockets(var) / "valkey.sock").chmod(0o777)
        os.chown(sockets(var), UNPRIVILEGED, UNPRIVILEGED)
        secrets, state, log = var / "secrets", var / "state", var / "logs"
        Keys(secrets, UNPRIVILEGED).create()
        (secrets / "DATABASE_URL").write_text(f"postgres://rme@{ENGINES.replace('/', '%2F')}/rme\n")
        (secrets / "REDIS_URL").write_text(f"unix://{ENGINES}/valkey.sock?db=0\n")
        log.mkdir()
        state.mkdir(mode=0o700)
        os.chown(state, UNPRIVILEGED, UNPRIVILEGED)
        metrics = var / "metrics"
        metrics.mkdir(mode=0o700)
        os.chown(metrics, UNPRIVILEGED, UNPRIVILEGED)
        made = Container(container.image(var), secrets, var, state, metrics)
        found = Deployment(made, free_port(), log)
        yield found
        for process in found.processes.values():
            process.kill()
            process.wait()


def wait_for(condition):
    until = time.monotonic() + START_SECONDS
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.2)
    return found


@pytest.mark.parametrize("name", container.OWN)
def test_container_can_write_only_to_its_data_folders(deployment, name):
    done = deployment.run(name, "python", "-c", RIGHTS)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "user": UNPRIVILEGED,
        "groups": [],
        "capabilities": 0,
        "no_new_privileges": 1,
        ".": "Read-only file system",
        "/etc": "Read-only file system",
        "/var/tmp": "Read-only file system",
        "/tmp": "yes",
        "/var/lib/rme": "yes",
    }


def test_from_nothing_to_the_first_message(deployment, capsys):
    deployment.start("migrate")
    ended = deployment.processes.pop("migrate").wait(START_SECONDS)
    assert ended == 0, (deployment.log / "migrate.log").read_text()
    for name in ("web", "worker", "beat"):
        deployment.start(name)
        wait_for(lambda name=name: deployment.is_healthy(name))
    # as the chart's startup probe asks: a worker without messages does tasks too
    probe = ["python", "-m", "rme.probe", "worker", "--worked", *QUEUES]
    wait_for(lambda: deployment.run("worker", *probe).returncode == 0)
    demo = json.loads(deployment.run("web", "python", "manage.py", "demo", "--json").stdout)
    base = f"http://127.0.0.1:{deployment.port}"
    form = {
        "grant_type": "client_credentials",
        "client_id": demo["client_id"],
        "client_secret": demo["client_secret"],
    }
    token = requests.post(f"{base}/services/oauth2/token", form, timeout=20).json()["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    body = {
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "to": [{"contactId": demo["contact_ids"][0]}],
        "template": {"name": "note", "language": "en_US"},
        "context": {"variables": {"note": "Hello from a container"}},
    }
    accepted = requests.post(f"{base}/rme/v1/messages", json=body, headers=headers, timeout=20)
    assert accepted.status_code == 202, accepted.text
    url = f"{base}/rme/v1/messages/{accepted.json()['messageId']}"

    def status():
        return requests.get(url, headers=headers, timeout=20).json()["status"]

    assert wait_for(lambda: status() in ("SENT", "DELIVERED"))
    # The web shows what the workers have counted in their container.
    metrics = requests.get(f"{base}/metrics", timeout=20).text
    assert 'rme_provider_seconds_count{outcome="Accepted",provider="simulator"} 1.0' in metrics
    page = requests.get(f"{base}/admin/login/", timeout=20)
    assert page.status_code == 200
    style = page.text.partition('<link href="/static/')[2].partition('"')[0]
    assert requests.get(f"{base}/static/{style}", timeout=20).status_code == 200
    with capsys.disabled():
        for name in ("web", "worker", "beat"):
            count, mebibytes = deployment.memory(name)
            print(f"\n{name}: {count} processes, {mebibytes} MiB", end="")
    deployment.processes["beat"].kill()
    deployment.processes.pop("beat").wait()
    assert not deployment.containers.is_healthy("beat", **deployment.env)
    assert [deployment.stop(name) for name in ("worker", "web")] == [0, 0]
