"""A PostgreSQL takes the connections that Patroni's servers make, by the lines of the example."""

import os
import signal
import subprocess
import time

import psycopg
import pytest
import yaml

from rme.run.places import UNPRIVILEGED
from rme.run.process import spawn, stop
from tests.combinations.scenes import BINARIES, START_SECONDS, Debian15
from tests.service import ROOT, data_folder, free_port

pytestmark = pytest.mark.skipif(
    not (BINARIES / "postgres").exists(), reason="`make postgres15` installs a server with TLS"
)
NODE = yaml.safe_load((ROOT / "deploy" / "postgresql" / "patroni.yml").read_text())["postgresql"]


def certificate(folder):
    """Make a certificate of localhost, which is its own authority."""
    names = [
        "-keyout",
        "server.key",
        "-out",
        "server.crt",
        "-addext",
        "subjectAltName=DNS:localhost",
    ]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run([*command, *names], cwd=folder, check=True, capture_output=True)
    (folder / "server.key").chmod(0o600)
    if os.getuid() == 0:
        os.chown(folder / "server.key", UNPRIVILEGED, UNPRIVILEGED)


@pytest.fixture(scope="module")
def server():
    """Return the folder and the port of a server with the example's pg_hba and TLS."""
    with data_folder() as var:
        made = Debian15(var / "patroni")
        made.create()
        users = {each["username"] for each in NODE["authentication"].values()}
        with psycopg.connect(made.where, autocommit=True) as connection:
            for user in users:
                connection.execute(f"CREATE ROLE {user} LOGIN REPLICATION PASSWORD 'p'")
            connection.execute("ALTER ROLE rme PASSWORD 'p'")
        made.stop()
        certificate(made.folder)
        lines = [each.replace("10.0.0.0/8", "127.0.0.1/32") for each in NODE["pg_hba"]]
        (made.folder / "data" / "pg_hba.conf").write_text("\n".join([*lines, ""]))
        port = free_port()
        settings = {
            name: str(value).replace("/etc/patroni", str(made.folder))
            for name, value in NODE["parameters"].items()
        }
        settings |= {"unix_socket_directories": str(made.folder), "listen_addresses": "localhost"}
        options = [f"--{name}={value}" for name, value in {**settings, "port": str(port)}.items()]
        process = spawn(
            [str(BINARIES / "postgres"), "-D", str(made.folder / "data"), *options],
            env={"PATH": os.environ["PATH"]},
            log=var / "server.log",
            user=made.user,
            death=signal.SIGINT,
        )
        ready = [str(BINARIES / "pg_isready"), "--quiet", "--host=localhost", f"--port={port}"]
        until = time.monotonic() + START_SECONDS
        while subprocess.run(ready, check=False).returncode:
            assert time.monotonic() < until, (var / "server.log").read_text()
            time.sleep(0.1)
        yield made.folder, port
        stop(process, signal.SIGINT)


def connect(server, user, **more):
    """Connect as the servers of the cluster do."""
    folder, port = server
    tls = {"sslmode": "verify-full", "sslrootcert": str(folder / "server.crt")}
    where = {"host": "localhost", "port": port, "user": user, "password": "p", "dbname": "rme"}
    return psycopg.connect(**{**where, **tls, "connect_timeout": 5, **more}, autocommit=True)


def test_servers_and_the_service_connect_only_by_tls(server):
    for user in ("rme", "rewind", "postgres"):
        with connect(server, user) as connection:
            [(encrypted,)] = connection.execute(
                "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
            )
            assert encrypted
    connect(server, "replicator", replication="true").close()
    with pytest.raises(psycopg.OperationalError, match="no encryption"):
        connect(server, "rme", sslmode="disable")
    with pytest.raises(psycopg.OperationalError, match=r"no pg_hba\.conf entry"):
        connect(server, "replicator")
