"""The whole service bound to an SMSC: who listens, when nothing is sent and when a worker dies."""

import subprocess
import sys

import orjson
import pytest
import requests

from rme.transport.smpp.pdu import CommandId
from tests.fakes.smpp import SmppServer
from tests.fakes.smsc import Smsc, wait_for
from tests.service import ROOT

pytestmark = pytest.mark.xdist_group("service")

ACCOUNT = """
from messaging.models import ProviderAccount
from rme.tenants.models import Organization
ProviderAccount.objects.create(organization=Organization.objects.get(id="demo"), kind="smpp",
    name="smsc-{0}", channel="SMS", priority={0}, credentials={1!r})
"""


LINKS = 4
"""Processes that send SMS: two of the channel, two that answer what people write."""


def add_accounts(service, *ports):
    """Add an account for each port; the first goes first."""
    settings = [{"host": "127.0.0.1", "port": port, "system_id": "esme"} for port in ports]
    code = "".join(
        ACCOUNT.format(priority, orjson.dumps(each).decode())
        for priority, each in enumerate(settings, 1)
    )
    command = [sys.executable, "manage.py", "shell", "-c", code]
    subprocess.run(command, cwd=ROOT, env=service.env, check=True)


def statuses(service):
    return service.sql("SELECT status FROM messaging_delivery WHERE channel = 'SMS'")


def test_each_worker_listens_rebinds_and_unbinds(callers_service):
    service = callers_service
    with Smsc() as smsc, SmppServer() as other:
        add_accounts(service, smsc.port, other.port)
        wait_for(lambda: len(smsc.sessions) == LINKS, 60)
        wait_for(lambda: len(other.of(CommandId.BIND_TRANSCEIVER)) == LINKS, 60)

        demo = service.demo()
        answer = requests.post(
            f"{demo['base_url']}/messages",
            json={
                "channel": "SMS",
                "category": "TRANSACTIONAL",
                "to": [{"contactId": demo["contact_ids"][0]}],
                "content": {"text": "Hello"},
            },
            headers={"Authorization": f"Bearer {service.token(demo)}"},
            timeout=20,
        )
        assert answer.status_code == 202
        wait_for(lambda: len(smsc.taken) == 1, 60)
        assert smsc.receipt("m1") == 0
        wait_for(lambda: statuses(service) == [("DELIVERED",)], 60)

        before = set(smsc.sessions)
        service.kill("rme.workers")
        wait_for(lambda: not before & set(smsc.sessions), 60)
        wait_for(lambda: len(smsc.sessions) == LINKS, 60)
        wait_for(lambda: len(other.of(CommandId.BIND_TRANSCEIVER)) == 2 * LINKS, 60)
        assert other.of(CommandId.UNBIND) == []
        assert service.stop() == 0
        wait_for(lambda: not smsc.sessions, 60)
        wait_for(lambda: len(other.of(CommandId.UNBIND)) == LINKS, 60)
