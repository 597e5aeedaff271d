"""A mail server that hangs, drips, resets or refuses for ever: only its own mail is late."""

import json
import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
import requests

from rme.run.engines import Postgres
from tests.fakes import tcp
from tests.fakes.slow_smtp import SlowSmtp
from tests.service import ROOT, data_folder, running

pytestmark = pytest.mark.xdist_group("service")

SECONDS = float(os.environ.get("SLOW_SECONDS", "5"))
"""How long the other organization's mail is watched, without the fault and with it."""
RATE = 8
HUNG = 300
ENV = {"OUTBOUND_OPEN_HOSTS": "127.0.0.1", "WEB_WORKERS": "1"}

SET_UP = """
import json, sys
from messaging.models import ProviderAccount
from rme.tenants.oauth import applications
from rme.tenants.models import Organization
from tests import factories
demo, hung, well = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def mail_by(organization, name, port):
    ProviderAccount.objects.filter(organization=organization, channel="EMAIL").delete()
    ProviderAccount.objects.create(organization=organization, name=name, kind="smtp",
        channel="EMAIL", credentials=json.dumps(
            {"host": "127.0.0.1", "port": port, "security": "NONE", "timeout": 20}))
    ProviderAccount.objects.get_or_create(organization=organization, name="texts",
        kind="simulator", channel="SMS", credentials="{}")
mail_by(Organization.objects.get(pk=demo), "hung", hung)
other = factories.organization("quiet")
factories.welcome(other)
mail_by(other, "well", well)
person = factories.contact(other, email="ada@quiet.example")
user = factories.integration_user("quiet")
application, secret = applications.create_application(other, "tests", user, "LIVE")
print(json.dumps({"client_id": application.client_id, "client_secret": secret,
    "contact": str(person.pk)}))
"""
LATE = """
SELECT round(extract(epoch FROM percentile_cont(%s) WITHIN GROUP (
  ORDER BY a.started_at - m.created_at))::numeric, 3)::float8, count(*)
FROM messaging_attempt a JOIN messaging_message m ON m.id = a.delivery_id
WHERE a.organization_id = 'quiet' AND m.id = ANY('{%s}') AND a.outcome IS NOT NULL
"""
CLOCK_ERROR = timedelta(seconds=1)
"""By how much a process may be late that did not run when the database told it the time."""


def drip(connection, number):
    """Greet a byte at a time, for ever."""
    tcp.drip(connection, b"220-" + b"x" * 100_000, 0.05)


def reset(connection, number):
    """Take a mail to its end, and reset."""
    stream = connection.makefile("rb")
    connection.sendall(b"220 mail.test\r\n")
    while line := stream.readline():
        if line[:4].upper() == b"DATA":
            connection.sendall(b"354 go on\r\n")
            while stream.readline() not in (b".\r\n", b""):
                pass
            tcp.reset(connection)
            return
        connection.sendall(b"250 ok\r\n")


def refuse(connection, number):
    """Answer 4xx for ever."""
    stream = connection.makefile("rb")
    connection.sendall(b"220 mail.test\r\n")
    while line := stream.readline():
        answer = b"451 4.3.0 later\r\n" if line[:4].upper() == b"RCPT" else b"250 ok\r\n"
        connection.sendall(answer)


FAULTS = {"hang": None, "drip": drip, "reset": reset, "refuse": refuse}
CHOSEN = os.environ.get("SLOW_FAULTS", "hang").split()


def shell(service, script, *arguments):
    command = [sys.executable, "-m", "rme.run", "--var", str(service.var), "exec", "--"]
    command += [sys.executable, "-c", f"import django; django.setup(){script}", *arguments]
    env = {**service.env, "DJANGO_SETTINGS_MODULE": "rme.settings", "PYTHONPATH": str(ROOT)}
    made = subprocess.run(command, cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(made.stdout.splitlines()[-1])


class Caller:
    """An application of one organization."""

    def __init__(self, service, demo, contact):
        self.url = f"{demo['base_url']}/messages"
        self.headers = {"Authorization": f"Bearer {service.token(demo)}"}
        self.contact = contact

    def body(self, **fields):
        given = {
            "channel": "EMAIL",
            "category": "TRANSACTIONAL",
            "to": [{"contactId": self.contact}],
        }
        return {**given, **fields}

    def call(self, path, body):
        answer = requests.post(self.url + path, json=body, headers=self.headers, timeout=20)
        assert answer.status_code == 202, answer.text
        return answer.json()


def watch(service, caller):
    """Send steadily for a while; return the median and the 99th percentile until it leaves."""
    body = caller.body(template={"name": "welcome"}, context={"variables": {"note": "n"}})
    messages = []
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        messages.append(caller.call("", body)["messageId"])
        time.sleep(1 / RATE)
    ids, count = ",".join(messages), len(messages)
    deadline = time.monotonic() + 90
    while service.sql(LATE % (0.5, ids))[0][1] < count and time.monotonic() < deadline:
        time.sleep(0.2)
    (median, sent), (p99, _) = (service.sql(LATE % (q, ids))[0] for q in (0.5, 0.99))
    assert sent == count
    return median, p99


@pytest.mark.parametrize("fault", CHOSEN)
def test_a_broken_mail_server_delays_no_other(fault):
    talk = FAULTS[fault]
    broken = SlowSmtp(lambda recipient: True) if talk is None else tcp.TcpServer(talk)
    with (
        broken,
        SlowSmtp(lambda recipient: False) as well,
        data_folder() as var,
        running(var, **ENV) as service,
    ):
        demo = service.demo()
        made = shell(service, SET_UP, demo["org"], str(broken.port), str(well.port))
        other = Caller(service, {**demo, **made}, made["contact"])
        own = Caller(service, demo, demo["contact_ids"][0])
        time.sleep(2.5)  # all processes have read the accounts
        watch(service, other)  # connections stand, and texts are compiled
        usual = watch(service, other)

        note = {"template": {"name": "note", "language": "en_US"}}
        note["context"] = {"variables": {"note": "n"}}
        own.call("/bulk", {"messages": [own.body(**note)] * HUNG})
        at = datetime.now(UTC) + timedelta(seconds=SECONDS / 2)
        scheduled = own.body(**note, schedule={"mode": "AT", "at": at.isoformat()})
        late = own.call("", {**scheduled, "channel": "SMS"})
        found = watch(service, other)
        print(f"{fault}: median and p99 {usual} s, with the fault {found} s")
        assert found[1] < max(2 * usual[1], 4.0)  # on a busy machine; it was 20 s
        (started,) = service.sql(
            f"SELECT started_at FROM messaging_attempt WHERE delivery_id = '{late['messageId']}'"
        )[0]
        assert -CLOCK_ERROR <= started - at < timedelta(seconds=5)  # 20 s are the broken server's
        in_doubt = "SELECT count(*) FROM messaging_attempt WHERE outcome IS NULL"
        assert service.sql(in_doubt)[0][0] <= 2 * 50
        if talk is None:
            _stop_in_the_midst(service, broken, in_doubt)


def _stop_in_the_midst(service, broken, in_doubt):
    """Stop while mails are in flight: what they come to is stored before the workers end."""
    assert service.sql(in_doubt)[0][0] > 0
    threading.Timer(2.0, broken.go.set).start()
    assert service.stop() == 0
    taken = len(broken.taken)
    accepted = (
        "SELECT count(*) FROM messaging_attempt WHERE provider = 'hung' AND outcome = 'Accepted'"
    )
    database = Postgres(service.var)  # alone: nobody decides what is in doubt
    try:
        database.start()
        assert service.sql(in_doubt) == [(0,)]
        assert service.sql(accepted)[0][0] >= taken - 10 * 2  # those whose time was over before
    finally:
        database.stop()
