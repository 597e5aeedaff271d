"""The examples of PostgreSQL clusters keep what a 202 promises."""

from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "postgresql"
CLOUDNATIVEPG = ("cloudnativepg.yaml", "cloudnativepg-restore.yaml")


def clusters():
    for name in CLOUDNATIVEPG:
        documents = yaml.safe_load_all((FOLDER / name).read_text())
        yield from (each["spec"] for each in documents if each["kind"] == "Cluster")


def patroni():
    return yaml.safe_load((FOLDER / "patroni.yml").read_text())["bootstrap"]["dcs"]


def test_a_commit_is_on_two_servers_and_only_a_server_that_has_it_is_promoted():
    durable = {"method": "any", "number": 1, "dataDurability": "required", "failoverQuorum": True}
    found = [(each["instances"], each["postgresql"]["synchronous"]) for each in clusters()]
    assert found == [(3, durable), (3, durable)]
    modes = {name: patroni()[name] for name in patroni() if name.startswith("synchronous")}
    assert modes == {
        "synchronous_mode": "quorum",
        "synchronous_node_count": 1,
        "synchronous_mode_strict": True,
    }


def test_settings_are_the_same_in_all_of_them():
    new, restored = (each["postgresql"]["parameters"] for each in clusters())
    assert new == restored
    shared = {name: str(value) for name, value in patroni()["postgresql"]["parameters"].items()}
    archive = ("archive_mode", "archive_command")  # CloudNativePG's plugin sets them
    assert {name: value for name, value in shared.items() if name not in archive} == new


def test_patroni_can_renew_its_lease_in_time():
    found = patroni()
    assert found["loop_wait"] + 2 * found["retry_timeout"] <= found["ttl"]
