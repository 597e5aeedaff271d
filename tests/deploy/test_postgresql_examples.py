"""The examples of PostgreSQL clusters keep what a 202 promises."""

from pathlib import Path

import yaml

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "postgresql"
CLOUDNATIVEPG = ("cloudnativepg.yaml", "cloudnativepg-restore.yaml")


def clusters():
    for name in CLOUDNATIVEPG:
        documents = yaml.safe_load_all((FOLDER / name).read_text())
        yield from (each["spec"] for each in documents if each["kind"] == "Cluster")


def documents(name):
    """Return the manifests of an example by kind."""
    return {each["kind"]: each for each in yaml.safe_load_all((FOLDER / name).read_text())}


def server():
    return yaml.safe_load((FOLDER / "patroni.yml").read_text())


def patroni():
    return server()["bootstrap"]["dcs"]


def test_commit_is_on_two_servers_and_only_those_can_be_promoted():
    durable = {"method": "any", "number": 1, "dataDurability": "required", "failoverQuorum": True}
    found = [(each["instances"], each["postgresql"]["synchronous"]) for each in clusters()]
    assert found == [(3, durable), (3, durable)]
    modes = {name: patroni()[name] for name in patroni() if name.startswith("synchronous")}
    assert modes == {
        "synchronous_mode": "quorum",
        "synchronous_node_count": 1,
        "synchronous_mode_strict": True,
    }


def test_postgresql_settings_are_the_same_in_all_examples():
    new, restored = (each["postgresql"]["parameters"] for each in clusters())
    assert new == restored
    shared = {name: str(value) for name, value in patroni()["postgresql"]["parameters"].items()}
    archive = ("archive_mode", "archive_command")  # CloudNativePG's plugin sets them
    assert {name: value for name, value in shared.items() if name not in archive} == new


def test_a_restored_cluster_is_as_safe_as_the_lost_one():
    new, restored = map(documents, CLOUDNATIVEPG)
    own = ("bootstrap", "externalClusters")
    specs = [
        {name: value for name, value in each["Cluster"]["spec"].items() if name not in own}
        for each in (new, restored)
    ]
    assert specs[0] == specs[1]
    for each in (new, restored):
        name, backup = each["Cluster"]["metadata"]["name"], each["ScheduledBackup"]["spec"]
        assert (backup["cluster"]["name"], backup["immediate"]) == (name, True)
    backups = [{**each["ScheduledBackup"]["spec"], "cluster": None} for each in (new, restored)]
    assert backups[0] == backups[1]


def test_servers_of_patroni_reach_each_other():
    """All lines of pg_hba but the socket's want TLS."""
    found = server()["postgresql"]
    lines = [each.split() for each in found["pg_hba"]]
    assert {line[0] for line in lines} == {"local", "hostssl"}
    names = ("ssl", "ssl_cert_file", "ssl_key_file")
    assert [found["parameters"].get(name, "")[:8] for name in names] == [
        "on",
        "/etc/pat",
        "/etc/pat",
    ]
    users = {each["username"]: each for each in found["authentication"].values()}
    assert {each["sslmode"] for each in users.values()} == {"verify-full"}
    allowed = {user for line in lines if line[3:4] == ["10.0.0.0/8"] for user in line[2].split(",")}
    assert allowed == {*users, "rme"}
    # Patroni's own connections: by the socket, and for replication by TCP.
    assert found["use_unix_socket"] is True
    assert ["local", "all", "all", "peer"] in lines
    assert ["hostssl", "replication", "replicator", "localhost", "scram-sha-256"] in lines


def test_patroni_and_etcd_require_credentials():
    api, store = server()["restapi"], server()["etcd3"]
    assert {"authentication", "certfile", "keyfile"} <= api.keys()
    assert (store["protocol"], "password" in store, "cacert" in store) == ("https", True, True)
    assert server()["ctl"]["cacert"] == api["cafile"]


def test_patroni_can_renew_its_lease_in_time():
    found = patroni()
    assert found["loop_wait"] + 2 * found["retry_timeout"] <= found["ttl"]
