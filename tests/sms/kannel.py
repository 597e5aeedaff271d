"""A real Kannel on loopback, with its own fake of an SMSC behind it."""

import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

import requests

from tests.fakes.smsc import wait_for
from tests.service import free_port

_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
BEARERBOX, SMSBOX = shutil.which("bearerbox", path=_PATH), shutil.which("smsbox", path=_PATH)
FAKESMSC = Path("/usr/lib/kannel/test/fakesmsc")
MISSING = not (BEARERBOX and SMSBOX and FAKESMSC.exists())

CONFIGURATION = """
group = core
admin-port = {admin}
admin-interface = 127.0.0.1
admin-password = admin
status-password = status
smsbox-port = {boxes}
smsbox-interface = 127.0.0.1
box-allow-ip = 127.0.0.1
log-file = {folder}/bearerbox.log
log-level = 0
store-type = file
store-location = {folder}/store
sms-resend-retry = 1

group = smsc
smsc = fake
smsc-id = fake
port = {smsc}
connect-allow-ip = 127.0.0.1

group = smsbox
bearerbox-host = 127.0.0.1
bearerbox-port = {boxes}
sendsms-port = {sendsms}
sendsms-interface = 127.0.0.1
log-file = {folder}/smsbox.log
log-level = 0
http-request-retry = 5
http-queue-delay = 1

group = sendsms-user
username = rme
password = "secret"
concatenation = true
max-messages = 10

group = sms-service
keyword = default
catch-all = true
max-messages = 0
get-url = "{inbound}&id=%I&t=%T&from=%p&to=%P&text=%a"
"""


class Kannel:
    """Bearerbox, smsbox and fakesmsc, while the context is open. `inbound`: where MO goes."""

    def __init__(self, folder: Path, inbound: str = "http://127.0.0.1:1/?none=1") -> None:
        self.folder = folder
        ports = {name: free_port() for name in ("admin", "boxes", "smsc", "sendsms")}
        self.ports = ports
        self.configuration = folder / "kannel.conf"
        self.inbound = inbound
        self.url = f"http://127.0.0.1:{ports['sendsms']}"
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        text = CONFIGURATION.format(folder=self.folder, inbound=self.inbound, **self.ports)
        self.configuration.write_text(text)
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self) -> None:
        self._start(str(BEARERBOX), str(self.configuration))
        self._answers(self.ports["admin"], "/status?password=status")
        self._start(str(SMSBOX), str(self.configuration))
        self._answers(self.ports["sendsms"], "/")
        self.log = self.write()  # an SMSC that takes messages
        wait_for(lambda: "(online " in self.status().partition("SMSC connections")[2], 60)

    def __exit__(self, *error: object) -> None:
        for process in reversed(self._running):
            process.terminate()
        for process in self._running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
            process.wait()

    def status(self) -> str:
        where = f"http://127.0.0.1:{self.ports['admin']}/status.txt?password=status"
        return requests.get(where, timeout=5).text

    def write(self, *letters: str) -> Path:
        """Be an SMSC with what people write (`sender receiver text words`); gives its log."""
        log = self.folder / f"fakesmsc{len(self._running)}.log"
        port = str(self.ports["smsc"])
        messages = letters or ("1 2 text none",)
        count = str(len(letters))
        command = [str(FAKESMSC), "-H", "127.0.0.1", "-r", port, "-i", "0.1", "-m", count]
        self._start(*command, *messages, log=log)
        return log

    def stop_smsc(self) -> None:
        """End the SMSC: Kannel's link to it takes but one at a time."""
        self._running[-1].terminate()
        self._running[-1].wait(10)
        wait_for(lambda: "(online " not in self.status().partition("SMSC connections")[2], 60)

    def _start(self, *command: str, log: Path | None = None) -> None:
        said = log or self.folder / f"out{len(self._running)}.log"
        with said.open("wb") as out:
            process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=out)
        self._running.append(process)

    def _answers(self, port: int, path: str) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with suppress(requests.ConnectionError):
                requests.get(f"http://127.0.0.1:{port}{path}", timeout=5)
                return
            time.sleep(0.05)
        raise AssertionError((self.folder / "out0.log").read_text()[-2000:])
