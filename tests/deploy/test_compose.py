"""compose.yaml: what every container has, and that no secret stands in it."""

import json
import re

import pytest

from rme.celery import QUEUES
from rme.core.environment import secret_files
from rme.key_files import Keys
from tests.deploy.container import COMPOSE, OWN, SERVICES
from tests.service import ROOT

ENGINES = {"postgres", "valkey"}


@pytest.mark.parametrize("name", [*OWN, *sorted(ENGINES)])
def test_every_container_is_confined_and_bounded(name):
    service = SERVICES[name]
    assert {each: service[each] for each in ("read_only", "cap_drop", "security_opt")} == {
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
    }
    assert service["mem_limit"]
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    assert service["restart"] == ("no" if name == "migrate" else "unless-stopped")
    assert ("healthcheck" in service) == (name != "migrate")
    assert "outside" in service["networks"] or COMPOSE["networks"]["data"] == {"internal": True}
    capabilities = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]
    assert service.get("cap_add", []) == (capabilities if name == "postgres" else [])


def test_there_are_these_services():
    assert {*SERVICES} == {*OWN} | ENGINES


def test_secrets_are_files_and_in_no_variable():
    text = (ROOT / "compose.yaml").read_text()
    for name in secret_files.SECRETS:
        assert f"${{{name}" not in text
    for name in OWN:
        assert SERVICES[name]["environment"] == {"SECRETS_DIR": "/run/secrets/rme"}
        assert SERVICES[name]["volumes"] == ["./secrets:/run/secrets/rme:ro"]
        # so that any setting can be made
        assert SERVICES[name]["env_file"] == [{"path": "settings.env", "required": False}]


def test_the_keys_reach_the_servers_of_this_file(tmp_path):
    command = re.search(r"--hosts (\S+) (\S+)", (ROOT / "docs" / "deployment.md").read_text())
    assert command
    Keys(tmp_path).create((command[1], command[2]))
    assert [host.partition(":")[0] for host in command.groups()] == ["postgres", "valkey"]
    file = COMPOSE["secrets"]["postgres_password"]["file"].rpartition("/")[2]
    assert (tmp_path / file).exists()
    assert secret_files.read({"SECRETS_DIR": str(tmp_path)})["REDIS_URL"] == "redis://valkey:6379/0"


def test_health_checks_look_at_what_is_started():
    checks = {name: SERVICES[name]["healthcheck"]["test"] for name in ("web", "worker", "beat")}
    probe = ["CMD", "python", "-m", "rme.probe"]
    assert checks == {
        "web": [*probe, "web"],
        "worker": [*probe, "worker", *QUEUES],
        "beat": [*probe, "beat"],
    }
    assert SERVICES["worker"]["command"] == ["python", "-m", "rme.workers"]


def test_the_image_runs_as_a_user_by_number_who_owns_the_folders():
    dockerfile = (ROOT / "Dockerfile").read_text()
    users = re.findall(r"^USER (\S+)", dockerfile, re.MULTILINE)
    (number,) = re.findall(r"--uid (\d+)", dockerfile)
    assert users == [f"{number}:{number}"]
    assert f"uid={number},gid={number}" in json.dumps(SERVICES["web"]["tmpfs"])
