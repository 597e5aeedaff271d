"""compose.yaml: what every container has, and that no secret stands in it."""

import json
import os
import re
import secrets
import subprocess

import psutil
import pytest
import redis

from rme.celery import QUEUES
from rme.core.environment import secret_files
from rme.key_files import Keys
from rme.run.engines import valkey_server
from tests.deploy.container import COMPOSE, OWN, SERVICES
from tests.service import ROOT, free_port, wait_for

ENGINES = {"postgres", "valkey"}
METRICS = "metrics:/var/lib/rme-metrics"


@pytest.mark.parametrize("name", [*OWN, *sorted(ENGINES)])
def test_every_container_is_confined_and_bounded(name):
    service = SERVICES[name]
    assert {each: service[each] for each in ("read_only", "cap_drop", "security_opt")} == {
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
    }
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    assert service["restart"] == ("no" if name == "migrate" else "unless-stopped")
    assert ("healthcheck" in service) == (name != "migrate")
    assert "outside" in service["networks"] or COMPOSE["networks"]["data"] == {"internal": True}
    capabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]
    assert service.get("cap_add", []) == (capabilities if name == "postgres" else [])


def test_compose_has_the_expected_services():
    assert {*SERVICES} == {*OWN} | ENGINES


def test_secrets_are_files_and_in_no_variable():
    text = (ROOT / "compose.yaml").read_text()
    for name in secret_files.SECRETS:
        assert f"${{{name}" not in text
    for name in OWN:
        assert SERVICES[name]["environment"]["SECRETS_DIR"] == "/run/secrets/rme"
        assert SERVICES[name]["volumes"] == ["./secrets:/run/secrets/rme:ro", METRICS]
        # so that any setting can be made
        assert SERVICES[name]["env_file"] == [{"path": "settings.env", "required": False}]


def test_env_file_cannot_override_ports_volumes_and_checks():
    """`environment` comes before `env_file`."""
    dockerfile = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    [image] = re.findall(r"^ENV ((?:.*\\\n)*.*)", dockerfile, re.MULTILINE)
    own = dict(re.findall(r"(HOST|PORT|RME_VAR|STATIC_ROOT)=(\S+)", image))
    assert own.keys() == {"HOST", "PORT", "RME_VAR", "STATIC_ROOT"}
    for name in OWN:
        assert SERVICES[name]["environment"] == {
            "SECRETS_DIR": "/run/secrets/rme",
            "METRICS_DIR": METRICS.partition(":")[2],
            **own,
        }
    assert SERVICES["web"]["ports"][0].endswith(f":{own['PORT']}")
    assert f"{own['RME_VAR']}:size=16m" in SERVICES["web"]["tmpfs"][1]


def test_valkey_refuses_writes_before_it_is_killed():
    script = SERVICES["valkey"]["command"][-1]
    sizes = [
        re.search(r"\$\{\w+:-(\d+)mb?\}", each)
        for each in (script, SERVICES["valkey"]["mem_limit"])
    ]
    assert [int(each[1]) for each in sizes if each] == [384, 512]


def test_valkey_takes_no_client_without_the_password(tmp_path):
    """compose's own command, with the embedded Valkey."""
    port, password = free_port(), secrets.token_hex(24)
    (tmp_path / "redis_password").write_text(f"{password}\n")
    shell, option, script = SERVICES["valkey"]["command"]
    script = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", script).replace("$$", "$")  # as compose does
    script = script.replace("/run/secrets", str(tmp_path))
    script = script.replace("exec valkey-server", f"exec {valkey_server()} --port {port}")
    env = {"PATH": os.environ["PATH"]}
    process = subprocess.Popen([shell, option, script], env=env, stdout=subprocess.DEVNULL)
    try:
        client = redis.Redis(port=port, password=password)
        wait_for(lambda: answers(client))
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=port).ping()
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert password not in " ".join(psutil.Process(process.pid).cmdline())
    finally:
        process.terminate()
        process.wait(60)


def answers(client):
    try:
        return client.ping()
    except redis.ConnectionError:
        return False


def test_an_image_may_have_the_packages_of_several_locks():
    assert SERVICES["web"]["build"]["args"] == ["PYTHON_IMAGE", "REQUIREMENTS"]
    dockerfile = (ROOT / "Dockerfile").read_text()
    [install] = re.findall(
        r"^RUN (for lock .*) \\\n *&& pip uninstall", dockerfile, re.M | re.DOTALL
    )
    script = f'pip() {{ echo "$@"; }}\n{install}'
    env = {"REQUIREMENTS": "requirements-archive.lock requirements-tracing.lock"}
    done = subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, check=True)
    options = "-r requirements-archive.lock -r requirements-tracing.lock"
    assert done.stdout == f"install --require-hashes {options}\n"
    archive, tracing = (
        dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / each).read_text(), re.MULTILINE))
        for each in env["REQUIREMENTS"].split()
    )
    shared = archive.keys() & tracing.keys()
    assert {each: archive[each] for each in shared} == {each: tracing[each] for each in shared}


def test_the_keys_reach_the_servers_of_this_file(tmp_path):
    command = re.search(r"--hosts (\S+) (\S+)", (ROOT / "docs" / "deployment.md").read_text())
    assert command
    Keys(tmp_path).create((command[1], command[2]))
    assert [host.partition(":")[0] for host in command.groups()] == ["postgres", "valkey"]
    files = {each["file"].rpartition("/")[2] for each in COMPOSE["secrets"].values()}
    assert files == {"POSTGRES_PASSWORD", "REDIS_PASSWORD"}
    found = secret_files.read({"SECRETS_DIR": str(tmp_path)})
    for file, url in (("POSTGRES_PASSWORD", "DATABASE_URL"), ("REDIS_PASSWORD", "REDIS_URL")):
        assert f":{(tmp_path / file).read_text().strip()}@" in found[url]


def test_health_checks_probe_the_started_programs():
    checks = {name: SERVICES[name]["healthcheck"]["test"] for name in ("web", "worker", "beat")}
    probe = ["CMD", "python", "-m", "rme.probe"]
    assert checks == {
        "web": [*probe, "web"],
        "worker": [*probe, "worker", *QUEUES],
        "beat": [*probe, "beat"],
    }
    assert SERVICES["worker"]["command"] == ["python", "-m", "rme.workers"]


def test_image_runs_as_a_numeric_user_owning_its_folders():
    dockerfile = (ROOT / "Dockerfile").read_text()
    users = re.findall(r"^USER (\S+)", dockerfile, re.MULTILINE)
    (number,) = re.findall(r"--uid (\d+)", dockerfile)
    assert users == [f"{number}:{number}"]
    assert f"uid={number},gid={number}" in json.dumps(SERVICES["web"]["tmpfs"])
    assert f"uid={number},gid={number}" in COMPOSE["volumes"]["metrics"]["driver_opts"]["o"]
