"""Debian's RabbitMQ on loopback, with data of the test's own."""

import os
import socket
import subprocess
import time
from pathlib import Path

from rme.run.process import spawn, stop
from tests.service import free_port

SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
START_SECONDS = 90.0
LOOPBACK = "{127,0,0,1}"


class RabbitMQ:
    """A node that is started and stopped at will. What it holds does not outlast its process."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.names = folder, free_port(), free_port()
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        (self.folder / "plugins").write_text("[].")
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "RABBITMQ_NODENAME": f"rme-{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"-kernel inet_dist_use_interface {LOOPBACK}",
            "ERL_EPMD_PORT": str(self.names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        log = self.folder / "rabbitmq.log"
        self.process = spawn([str(SERVER)], env=env, log=log, death=15)
        until = time.monotonic() + START_SECONDS
        while not self._listens():
            assert self.process.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the node, and the register of names that Erlang leaves behind."""
        if self.process:
            stop(self.process, 15)
            env = {**os.environ, "ERL_EPMD_PORT": str(self.names)}
            subprocess.run(["epmd", "-kill"], env=env, capture_output=True, check=False)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
