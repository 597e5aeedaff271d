"""Three mail servers and three SMS services, killed, slowed, muted and raised again under load.

Nothing is lost, nothing arrives twice, what may have arrived is given to nobody else, and circuits
open and close.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import cycle
from pathlib import Path

import pytest
import requests

from tests.service import ROOT, data_folder, free_port, running

pytestmark = pytest.mark.xdist_group("service-2")

SECONDS = float(os.environ.get("FAULT_SECONDS", "60"))
CATCH_UP_SECONDS = 180
SEED = 6
AT_ONCE = 40
"""Messages of each channel that are accepted together, about once a second."""
ENV = {
    "OUTBOUND_OPEN_HOSTS": "127.0.0.1",
    "WEB_WORKERS": "1",
    "LEASE_SECONDS": "12",
    "UNKNOWN_SECONDS": "1",
    "CIRCUIT_SECONDS": "4",
    "CIRCUIT_OPEN_SECONDS": "2",
}
KINDS = ("smtp", "smtp", "smtp", "sms", "sms", "sms")

# Accounts are made by the service's own code, as the admin makes them; what is unknown is held.
SET_UP = """
import json, sys
from messaging.models import Category, ProviderAccount
org, accounts = sys.argv[1], json.loads(sys.argv[2])
Category.objects.update_or_create(organization_id=org, name="TRANSACTIONAL", defaults={
    "regime": "OPT_OUT", "on_unknown": "HOLD", "expires_after": 86400})
ProviderAccount.objects.filter(organization_id=org).delete()
for place, account in enumerate(accounts):
    ProviderAccount.objects.create(organization_id=org, priority=1 + place % 3, **account)
"""


class Far:
    """One service at the far end: a process, and the file of what it took in all its lives."""

    def __init__(self, name: str, kind: str, folder: Path) -> None:
        self.name, self.kind, self.port = name, kind, free_port()
        self.ids = folder / name
        self.ids.touch()
        self.back_at = 0.0
        self.process = self.start()

    def start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "tests.fakes.flaky", self.kind]
        command += ["--port", str(self.port), "--ids", str(self.ids)]
        self.process = subprocess.Popen(command, cwd=ROOT)
        return self.process

    def suffer(self, what: str, seconds: float) -> None:
        self.back_at = time.monotonic() + seconds
        number = {"kill": signal.SIGKILL, "slow": signal.SIGUSR1, "mute": signal.SIGUSR2}[what]
        self.process.send_signal(number)
        if what == "kill":
            self.process.wait()

    def recover(self) -> None:
        self.back_at = 0.0
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGHUP)
        else:
            self.start()

    def taken(self) -> list[str]:
        return self.ids.read_text().split()

    def account(self) -> dict[str, str]:
        mail = {"host": "127.0.0.1", "port": self.port, "security": "NONE", "timeout": 3}
        texts = {
            "url": f"http://127.0.0.1:{self.port}/",
            "timeout": 3,
            "parameters_json": '{"id": "{id}", "to": "{to}"}',
        }
        smtp = self.kind == "smtp"
        return {
            "name": self.name,
            "kind": "smtp" if smtp else "http_sms",
            "channel": "EMAIL" if smtp else "SMS",
            "credentials": json.dumps(mail if smtp else texts),
        }


@pytest.fixture
def far_ends(tmp_path):
    made = [Far(f"{kind}-{place}", kind, tmp_path) for place, kind in enumerate(KINDS)]
    yield made
    for each in made:
        each.process.kill()
        each.process.wait()


def shell(service, script, *arguments):
    command = [sys.executable, "-m", "rme.run", "--var", str(service.var), "exec", "--"]
    command += [sys.executable, "-c", f"import django; django.setup(){script}", *arguments]
    env = {**service.env, "DJANGO_SETTINGS_MODULE": "rme.settings"}
    subprocess.run(command, cwd=ROOT, env=env, check=True)


class Load:
    """Messages to the demo's contacts, half by mail and half by SMS."""

    def __init__(self, service) -> None:
        self.demo = service.demo()
        token = service.token(self.demo)
        self.headers = {"Authorization": f"Bearer {token}"}
        self.people = cycle(self.demo["contact_ids"])
        self.accepted = 0

    def add(self) -> None:
        item = {
            "category": "TRANSACTIONAL",
            "template": {"name": "note", "language": "en_US"},
            "context": {"variables": {"note": "n"}},
        }
        messages = [
            {**item, "channel": channel, "to": [{"contactId": next(self.people)}]}
            for channel in ("EMAIL", "SMS")
            for _ in range(AT_ONCE)
        ]
        url = f"{self.demo['base_url']}/messages/bulk"
        answer = requests.post(url, json={"messages": messages}, headers=self.headers, timeout=20)
        assert answer.json()["accepted"] == len(messages), answer.text[:500]
        self.accepted += len(messages)

    def circuits(self) -> dict[str, str]:
        url = f"{self.demo['base_url']}/health"
        shown = requests.get(url, headers=self.headers, timeout=20).json()["providers"]
        return {each["name"]: each["circuit"] for each in shown}


def torment(dice, deck, far_ends) -> None:
    """Let one of those that are well suffer, mostly; one of a channel at least stays well."""
    for each in far_ends:
        if each.back_at and time.monotonic() > each.back_at:
            each.recover()
    well = [each for each in far_ends if not each.back_at]
    chosen = dice.choice(well) if well else None
    if chosen and sum(each.kind == chosen.kind for each in well) > 1:
        if not deck:
            deck += dice.sample(["kill", "kill", "slow", "mute"], 4)
        chosen.suffer(deck.pop(), dice.uniform(4, 9))


def open_first(kind, load, far_ends, seen) -> None:
    """Kill what goes first on a channel, until its circuit opens, if chance has opened none."""
    if any(seen[each.name, "OPEN"] for each in far_ends if each.kind == kind):
        return
    first = next(each for each in far_ends if each.kind == kind)
    first.recover()
    first.suffer("kill", CATCH_UP_SECONDS)

    def is_open() -> bool:
        load.add()
        seen.update(load.circuits().items())
        return bool(seen[first.name, "OPEN"])

    await_(is_open, CATCH_UP_SECONDS, load.circuits)


def await_(condition, seconds, what) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, what()
        time.sleep(0.5)


ON_ITS_WAY = """
SELECT count(*) FROM messaging_delivery
WHERE NOT (status IN ('SENT', 'DELIVERED') OR (status = 'UNKNOWN' AND due_at IS NULL))
"""
AFTER_UNKNOWN = """
SELECT count(*) FROM messaging_attempt a JOIN messaging_attempt b ON b.delivery_id = a.delivery_id
WHERE b.id > a.id AND coalesce(a.outcome, 'Unknown') = 'Unknown'
"""
STATUSES = "SELECT status, reason, count(*) FROM messaging_delivery GROUP BY 1, 2"


def arrived(service, far_ends) -> Counter[str]:
    """Count what the far ends took, by delivery."""
    attempts = dict(service.sql("SELECT id::text, delivery_id::text FROM messaging_attempt"))
    found: Counter[str] = Counter()
    for each in far_ends:
        for identifier in each.taken():
            known = identifier.partition("@")[0] if each.kind == "smtp" else attempts[identifier]
            found[known] += 1
    return found


@pytest.mark.promise("routes-5")
def test_nothing_is_lost_or_doubled_while_providers_fail_and_recover(far_ends):
    dice, deck = random.Random(SEED), []
    with (
        data_folder() as var,
        running(var, **ENV) as service,
    ):
        load = Load(service)
        accounts = json.dumps([each.account() for each in far_ends])
        shell(service, SET_UP, load.demo["org"], accounts)
        time.sleep(2.5)  # all processes have read the accounts
        seen: Counter[tuple[str, str]] = Counter()
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            load.add()
            torment(dice, deck, far_ends)
            seen.update(load.circuits().items())
            time.sleep(0.8)
        for kind in sorted({each.kind for each in far_ends}):
            open_first(kind, load, far_ends, seen)
        for each in far_ends:
            each.recover()

        # Everything ends by itself but what nobody can know, which is held.
        left = lambda: service.sql(ON_ITS_WAY)[0][0]
        await_(lambda: not left(), CATCH_UP_SECONDS, lambda: service.sql(STATUSES))
        assert service.sql(AFTER_UNKNOWN) == [(0,)]
        found = arrived(service, far_ends)
        assert [one for one, count in found.items() if count > 1] == []
        rows = dict(service.sql("SELECT id::text, status FROM messaging_delivery"))
        assert len(rows) == load.accepted
        assert [one for one, status in rows.items() if status == "SENT" and not found[one]] == []
        held = {one for one, status in rows.items() if status == "UNKNOWN"}
        assert {one for one in rows if not found[one]} <= held

        # A person decides what is held, as docs/operations.md says: what never came goes again.
        again = sorted(held - set(found))
        named = ",".join(f"'{one}'" for one in again) or "NULL"
        service.sql(
            "UPDATE messaging_delivery SET status = 'ACCEPTED', due_at = now() "
            f"WHERE id::text IN ({named}) AND status = 'UNKNOWN' RETURNING 1"
        )
        await_(lambda: not left(), CATCH_UP_SECONDS, lambda: service.sql(STATUSES))
        assert set(arrived(service, far_ends).values()) == {1}
        assert len(arrived(service, far_ends)) == load.accepted

        # Circuits opened, and all close when there is traffic.
        assert {each.kind for each in far_ends if seen[each.name, "OPEN"]} == {"smtp", "sms"}

        def all_closed() -> bool:
            load.add()
            return set(load.circuits().values()) == {"CLOSED"}

        await_(all_closed, 90, load.circuits)
        failed_over = service.sql("SELECT count(*) FROM messaging_event WHERE type = 'failover'")
        print(load.accepted, "messages,", failed_over[0][0], "failovers,", len(held), "held,",
              len(again), "of them sent again")  # fmt: skip
        assert held  # and it was tried
        assert failed_over[0][0]
