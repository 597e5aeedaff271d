"""A real Firefox, driven by Marionette: JSON over a socket, as its own tests drive it.

https://firefox-source-docs.mozilla.org/testing/marionette/Protocol.html
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.fakes.tcp import free_port

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
START_SECONDS = 60.0
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"

# Nothing leaves this machine: all that is not on loopback goes to a proxy that is not there.
_PREFERENCES: dict[str, Any] = {
    "alerts.useSystemBackend": False,
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "browser.aboutwelcome.enabled": False,
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage": "about:blank",
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.push.connection.enabled": True,
    "dom.push.retryBaseInterval": 100,
    "dom.push.testing.allowInsecureServerURL": True,
    "extensions.update.enabled": False,
    "intl.accept_languages": "en-GB",
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.type": 1,
    "permissions.default.desktop-notification": 1,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}

_FORGET = """
  await new Promise((done) =>
    Services.clearData.deleteData(Ci.nsIClearDataService.CLEAR_ALL, done));
  for (const alert of [...Services.wm.getEnumerator("alert:alert")]) alert.close();
"""


class BrowserSaid(Exception):
    """The browser refused a command."""


class Firefox:
    """A browser with a profile of its own."""

    def __init__(self, connection: socket.socket) -> None:
        self._stream = connection.makefile("rwb")
        self._number = 0
        self._read()  # it says who it is
        self.ask("WebDriver:NewSession", {"strictFileInteractability": False})
        self.ask("WebDriver:SetTimeouts", {"script": 20_000, "pageLoad": 20_000, "implicit": 5_000})

    def _read(self) -> Any:
        length = b""
        while (character := self._stream.read(1)) != b":":
            if not character:
                raise BrowserSaid("it is gone")
            length += character
        return json.loads(self._stream.read(int(length)))

    def ask(self, command: str, given: dict[str, Any] | None = None) -> Any:
        """Send a command and return its result."""
        self._number += 1
        text = json.dumps([0, self._number, command, given or {}]).encode()
        self._stream.write(b"%d:%b" % (len(text), text))
        self._stream.flush()
        _, number, error, result = self._read()
        assert number == self._number
        if error:
            raise BrowserSaid(f"{command}: {error['error']}: {error['message']}")
        return result["value"] if isinstance(result, dict) and "value" in result else result

    # --- the page -------------------------------------------------------------------------------

    def open(self, address: str) -> None:
        self.ask("WebDriver:Navigate", {"url": address})

    def find(self, selector: str) -> str:
        found = self.ask("WebDriver:FindElement", {"using": "css selector", "value": selector})
        element: str = found[_ELEMENT]
        return element

    def click(self, selector: str) -> None:
        self.ask("WebDriver:ElementClick", {"id": self.find(selector)})

    def type(self, selector: str, text: str) -> None:
        self.ask("WebDriver:ElementSendKeys", {"id": self.find(selector), "text": text})

    def text(self, selector: str) -> str:
        found: str = self.ask("WebDriver:GetElementText", {"id": self.find(selector)})
        return found

    def run(self, script: str, *arguments: Any) -> Any:
        """Run an async function's body in the page; what it returns must be JSON."""
        body = f"return (async (...given) => {{ {script} }})(...arguments);"
        return self.ask("WebDriver:ExecuteScript", {"script": body, "args": list(arguments)})

    def run_inside(self, script: str, *arguments: Any) -> Any:
        """Run it in the browser's own window, as a person at its buttons could."""
        self.ask("Marionette:SetContext", {"value": "chrome"})
        try:
            return self.run(script, *arguments)
        finally:
            self.ask("Marionette:SetContext", {"value": "content"})

    def prefer(self, name: str, text: str) -> None:
        """Set a preference."""
        self.run_inside("Services.prefs.setStringPref(...given);", name, text)

    def forget_everything(self) -> None:
        """Forget all that sites have left (cookies, workers, subscriptions) and what is shown."""
        self.run_inside(_FORGET)

    def addresses(self) -> list[str]:
        """Return the URLs of all tabs."""
        found: list[str] = self.run_inside(
            "return window.gBrowser.browsers.map((one) => one.currentURI.spec);"
        )
        return found


def until(ask: Any, expected: Any, seconds: float = 15.0) -> Any:
    """Ask until the answer is as expected, or the time is over; give the last answer."""
    end = time.monotonic() + seconds
    while (found := ask()) != expected and time.monotonic() < end:
        time.sleep(0.05)
    return found


@contextmanager
def firefox(profile: Path, **preferences: Any) -> Iterator[Firefox]:
    """Run the browser while the context is open, with a fresh profile in an empty folder."""
    assert FIREFOX is not None
    port = free_port()
    chosen = {**_PREFERENCES, "marionette.port": port, **preferences}
    lines = [f"user_pref({json.dumps(n)}, {json.dumps(v)});" for n, v in chosen.items()]
    (profile / "user.js").write_text("\n".join(lines))
    process = subprocess.Popen(
        [
            *(FIREFOX, "--headless", "--no-remote", "--profile", str(profile)),
            *("--marionette", "--remote-allow-system-access"),
        ],
        env={**os.environ, "HOME": str(profile), "MOZ_CRASHREPORTER_DISABLE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=(profile / "stderr.log").open("w"),
        start_new_session=True,
    )
    try:
        with _connect(port, process) as connection:
            yield Firefox(connection)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


def _connect(port: int, process: subprocess.Popen[bytes]) -> socket.socket:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), 5)
        except OSError:
            assert process.poll() is None, "Firefox ended at once"
            assert time.monotonic() < end, "Firefox does not listen"
            time.sleep(0.1)
        else:
            connection.settimeout(60)
            return connection
