"""The whole service bound to an SMSC: who listens, when nothing is sent and when a worker dies."""

import subprocess
import sys
import tempfile
from pathlib import Path

import orjson
import pytest
import requests

from tests.fakes.smsc import Smsc, wait_for
from tests.service import ROOT, running

pytestmark = pytest.mark.xdist_group("service")

ACCOUNT = """
from messaging.models import ProviderAccount
from rme.tenants.models import Organization
ProviderAccount.objects.create(organization=Organization.objects.get(id="demo"), kind="smpp",
    name="smsc", channel="SMS", priority=1, credentials={!r})
"""


def statuses(service):
    return sorted(row[0] for row in service.sql("SELECT status FROM messaging_delivery"))


def test_each_worker_listens_and_binds_again_and_leaves_politely():
    with tempfile.TemporaryDirectory(prefix="rme-test-", dir="/var/tmp") as folder, Smsc() as smsc:
        env = {"OUTBOUND_OPEN_HOSTS": "127.0.0.1", "WORKER_CONCURRENCY": "2"}
        with running(Path(folder), **env) as service:
            settings = {"host": "127.0.0.1", "port": smsc.port, "system_id": "esme"}
            shell = [sys.executable, "manage.py", "shell", "-c"]
            code = ACCOUNT.format(orjson.dumps(settings).decode())
            subprocess.run([*shell, code], cwd=ROOT, env=service.env, check=True)
            wait_for(lambda: len(smsc.sessions) == 2, 20)

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
            wait_for(lambda: len(smsc.taken) == 1, 20)
            assert smsc.receipt("m1") == 0
            wait_for(lambda: statuses(service) == ["DELIVERED"], 20)

            before = set(smsc.sessions)
            service.kill("celery --quiet -A rme.celery worker")
            wait_for(lambda: not before & set(smsc.sessions), 20)
            wait_for(lambda: len(smsc.sessions) == 2, 30)
            assert service.stop() == 0
        wait_for(lambda: not smsc.sessions)
