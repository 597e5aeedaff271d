"""A primary and a replica of Valkey on loopback, and Sentinels that watch them."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from redis import Redis, RedisError

from rme.run.engines import valkey_server
from rme.run.process import spawn, stop
from tests.service import free_port

SERVICE = "rme"
PASSWORD = "p@ss:word/1"
START_SECONDS = 60.0
_MONITOR = """port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor {service} 127.0.0.1 {primary} {quorum}
sentinel auth-pass {service} {password}
sentinel down-after-milliseconds {service} 1000
sentinel failover-timeout {service} 3000
"""


class Watched:
    """Two servers, of which either may be the primary, and their Sentinels."""

    def __init__(self, folder: Path, sentinels: int = 1) -> None:
        self.folder = folder
        self.ports = [free_port(), free_port()]
        self.sentinels = [free_port() for _ in range(sentinels)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """The address by which the service finds the primary."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.sentinels)
        password = PASSWORD.replace("@", "%40").replace(":", "%3A").replace("/", "%2F")
        return f"redis+sentinel://:{password}@{hosts}/{SERVICE}/1"

    def start(self) -> None:
        """Start all, and wait until a failover would find a replica."""
        self.folder.mkdir(exist_ok=True)
        for port in self.ports:
            self.start_server(port, primary=self.ports[0])
        replica = self.client(self.ports[1])
        _until(lambda: replica.info("replication")["master_link_status"] == "up")
        for port in self.sentinels:
            self._start_sentinel(port)
        for port in self.sentinels:
            _until(partial(self._knows_all, Redis(port=port, socket_timeout=5)))

    def _knows_all(self, sentinel: Redis) -> bool:
        found = sentinel.sentinel_master(SERVICE)
        others = len(self.sentinels) - 1
        return (found["num-slaves"], found["num-other-sentinels"]) == (1, others)

    def start_server(self, port: int, primary: int) -> None:
        """Start one of the servers: as the primary, or as a replica of it."""
        options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--databases", "32"]
        options += ["--requirepass", PASSWORD, "--masterauth", PASSWORD, "--dir", str(self.folder)]
        options += ["--repl-diskless-sync-delay", "0"]
        if port != primary:
            options += ["--replicaof", f"127.0.0.1 {primary}"]
        self._spawn(port, options)
        _until(lambda: self.client(port).ping())

    def primary(self) -> int:
        """Return the port of the primary that the first Sentinel names."""
        found = Redis(port=self.sentinels[0], socket_timeout=5)
        return int(found.sentinel_get_master_addr_by_name(SERVICE)[1])

    def kill(self, port: int) -> None:
        """Kill a server, as the kernel would."""
        self._processes[port].kill()
        self._processes.pop(port).wait()

    def freeze(self, port: int) -> None:
        """Stop a server, as a machine does that hangs."""
        self._processes[port].send_signal(signal.SIGSTOP)

    def wait_for_another(self, port: int) -> None:
        """Wait until the Sentinels name another primary than the one at a port."""
        _until(lambda: self.primary() != port)

    def bring_back(self, port: int) -> None:
        """Let a server that was killed or frozen be the replica of the present primary."""
        primary = self.primary()
        if port in self._processes:
            self._processes[port].send_signal(signal.SIGCONT)
        else:
            self.start_server(port, primary)
        replica = self.client(port)
        _until(lambda: replica.info("replication").get("master_link_status") == "up")
        for each in self.sentinels:
            _until(partial(self._knows_all, Redis(port=each, socket_timeout=5)))

    def client(self, port: int) -> Redis:
        """Return a client of one of the servers."""
        return Redis(port=port, password=PASSWORD, socket_timeout=5)

    def stop(self) -> None:
        """End all."""
        for process in self._processes.values():
            stop(process, signal.SIGTERM)

    def _start_sentinel(self, port: int) -> None:
        configuration = self.folder / f"sentinel-{port}.conf"  # which it writes, too
        quorum = len(self.sentinels) // 2 + 1
        values = {"port": port, "folder": self.folder, "primary": self.ports[0]}
        values |= {"service": SERVICE, "quorum": quorum, "password": PASSWORD}
        configuration.write_text(_MONITOR.format(**values))
        self._spawn(port, [str(configuration), "--sentinel"])
        _until(lambda: Redis(port=port, socket_timeout=5).ping())

    def _spawn(self, port: int, options: list[str]) -> None:
        self._processes[port] = spawn(
            [str(valkey_server()), *options],
            env={"PATH": os.environ["PATH"]},
            log=self.folder / f"{port}.log",
            death=signal.SIGTERM,
        )


def _until(condition: Callable[[], object]) -> None:
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            if condition():
                return
        except (RedisError, OSError):
            pass  # it is still starting
        assert time.monotonic() < until, "the servers do not find each other"
        time.sleep(0.05)
