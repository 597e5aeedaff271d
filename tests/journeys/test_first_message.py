"""The first minutes of a newcomer: the service comes up, one curl sends a real email."""

import json
import re
import shlex
import socket
import subprocess
import tempfile
from email import message_from_bytes, policy
from pathlib import Path

import pytest
import requests
from aiosmtpd.controller import Controller

from tests.service import ROOT, free_port, running, wait_for

pytestmark = pytest.mark.xdist_group("service")


class Mailbox:
    """What a real SMTP server received."""

    def __init__(self) -> None:
        self.mails = []

    async def handle_DATA(self, server, session, envelope):
        self.mails.append(
            (envelope.rcpt_tos, message_from_bytes(envelope.content, policy=policy.default))
        )
        return "250 OK"


def readme_block(heading: str) -> str:
    """Return the first shell block after a heading of the README."""
    text = (ROOT / "README.md").read_text()
    return re.search(rf"{heading}.*?```sh\n(.*?)```", text, re.DOTALL).group(1)


@pytest.fixture
def var():
    with tempfile.TemporaryDirectory(prefix="rme-test-", dir="/var/tmp") as folder:
        yield Path(folder)


@pytest.mark.promise("tokens-14")
def test_the_readmes_request_sends_a_real_email(var):
    mailbox = Mailbox()
    port = free_port()
    server = Controller(mailbox, hostname="127.0.0.1", port=port)
    server.start()
    with running(var, SMTP_URL=f"smtp+plain://127.0.0.1:{port}") as service:
        demo = service.demo_json()
        assert set(demo) >= {
            "base_url", "auth_url", "bot_base_url", "admin_url", "admin_user", "admin_password",
            "org", "client_id", "client_secret", "api_key", "contact_ids", "integration_user",
            "jwt_client_id", "jwt_private_key_pem", "test_client_id", "test_client_secret",
            "other", "sender_domain", "contacts_by_zone", "contact_emails", "templates",
        }  # fmt: skip
        script = readme_block("## Send something") + "\necho\n" + readme_block("## Answer a bot")
        script = script.replace("make -s", "make -s PORT=$PORT")
        env = service.env | {"PATH": "/usr/bin:/bin:/usr/local/bin"}
        said = subprocess.run(
            ["bash", "-euc", script], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        assert said.returncode == 0, said.stderr
        message_id = re.search(r'"messageId": ?"([^"]+)"', said.stdout).group(1)
        confirmed, made = map(
            json.loads, re.findall(r'\{"code".*?"requestId":"[^"]*"\}', said.stdout)
        )
        assert (confirmed["status"], len(confirmed["msg"])) == ("Success", 1)
        assert (made["status"], made["created"]) == ("Case Created Successfully", True)
        (to, mail) = wait_for(lambda: mailbox.mails)[0]
        assert to == [demo["contact_emails"][demo["contact_ids"][0]]]
        assert mail["subject"] == "A note for Olivia"
        assert mail["from"] == f"Demo <no-reply@{demo['sender_domain']}>"
        assert "Hello from rme" in mail.get_body(("plain",)).get_content()
        headers = {"Authorization": f"Bearer {service.token(demo)}"}
        url = f"{demo['base_url']}/messages/{message_id}"

        def detail():
            return requests.get(url, headers=headers, timeout=5).json()

        wait_for(lambda: detail()["status"] == "SENT")
        assert [event["type"] for event in detail()["events"]] == ["accepted", "sent"]

        # A second start of the same folder is refused; a busy port is one clear sentence.
        again = subprocess.run(
            shlex.split("python -m rme.run up"), cwd=ROOT, env=env | {"PATH": _venv()},
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        assert (again.returncode, again.stderr) == (
            1,
            "rme: It is running already in this folder (another `make run`).\n",
        )
        assert chunked_token(service.port, demo) == 200
        assert service.stop() == 0
    server.stop()


def _venv() -> str:
    import sys

    return f"{Path(sys.executable).parent}:/usr/bin:/bin"


def chunked_token(port: int, demo: dict) -> int:
    """Ask for a token with a chunked form body, as some clients send it; gives the status."""
    form = (
        f"grant_type=client_credentials&client_id={demo['client_id']}"
        f"&client_secret={demo['client_secret']}"
    ).encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (form[:10], form[10:], b""))
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(
            b"POST /services/oauth2/token HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n"
            b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + chunks
        )
        return int(connection.recv(4096)[9:12])


def test_busy_port_is_reported_in_one_sentence(var):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        done = subprocess.run(
            ["python", "-m", "rme.run", "up"],
            cwd=ROOT,
            env={"PATH": _venv(), "PORT": str(port), "RME_VAR": str(var)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        f"rme: Port {port} is taken by another program; try PORT={port + 1} make run.\n",
    )
