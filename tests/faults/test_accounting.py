"""Faults under traffic: every message accepted is accounted for at a real mail server.

The short form sends a few hundred messages around each fault. The long one (`make test-faults`)
draws faults at random for minutes and writes docs/faults.md.
"""

import os
import random
import time
from collections import defaultdict

import pytest

from tests.faults.accounting import WINDOW, Traffic, endure
from tests.faults.inflict import FAULTS, LONG_FAULTS, WORKER
from tests.service import ROOT

pytestmark = pytest.mark.xdist_group("service-2")


@pytest.fixture(scope="module")
def traffic(scene):
    """Return a program that sends."""
    return Traffic(*scene)


def check(account, fault, processes):
    """Check that nothing is lost, and that only what was in doubt arrived twice."""
    assert account.lost == []
    assert account.odd == []
    assert account.inexcusable == []
    assert sum(account.doubled.values()) <= (WINDOW * processes if fault.kills_senders else 0)
    poisoned = ["TEMPLATE_ERROR"] if fault.name == "poisoned delivery" else []
    assert [reason for _, reason in account.failed] == poisoned
    assert account.received == account.accepted - len(poisoned)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "_"))
def test_every_accepted_message_is_sent(scene, traffic, fault):
    service, sink = scene
    processes = len(service.children(WORKER))
    account = endure(service, sink, traffic, fault)
    print(account)
    assert account.accepted > 0
    check(account, fault, processes)


@pytest.mark.long
def test_every_accepted_message_is_sent_in_minutes_of_faults(scene, traffic):
    service, sink = scene
    seed = int(os.environ.get("FAULT_SEED", time.time()))
    seconds = float(os.environ.get("FAULT_SECONDS", "600"))
    print(f"FAULT_SEED={seed} FAULT_SECONDS={seconds:.0f}")
    dice, deck, accounts = random.Random(seed), [], defaultdict(list)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        deck = deck or dice.sample(LONG_FAULTS, len(LONG_FAULTS))
        fault = deck.pop()
        processes = len(service.children(WORKER))
        account = endure(service, sink, traffic, fault)
        print(account)
        accounts[fault.name].append(account)
        check(account, fault, processes)
        time.sleep(dice.uniform(0, 5))
    (ROOT / "docs" / "faults.md").write_text(report(accounts, seed, seconds))


HEAD = """# Faults under traffic

Written by `make test-faults` (`FAULT_SEED={seed} FAULT_SECONDS={seconds:.0f}`). A program sends
bulks of 20 emails, some scheduled, and repeats each with the same `Idempotency-Key` until it gets a
202. A mail server runs in a separate process. The faults below happen in random order to processes
that the test starts as `make run` does. After each fault, it looks for every accepted message at
the mail server.

*Doubled* counts extra copies: messages of a window whose outcome was unknown when a process or
PostgreSQL went away, in a category that resends ([architecture.md](architecture.md#faults)).
*Outage* is the longest time with no 202, *silence* the longest with no mail at the mail server,
both for the worst case of the fault. They include the three seconds that a fault lasts.

| fault | times | accepted | received | doubled | lost | failed alone | outage | silence |
|---|---|---|---|---|---|---|---|---|
"""


def report(accounts, seed, seconds):
    """Return the text of docs/faults.md."""
    lines = []
    totals = [each for found in accounts.values() for each in found]
    for name, found in [*sorted(accounts.items()), ("**all**", totals)]:
        cells = [
            name,
            len(found),
            sum(each.accepted for each in found),
            sum(each.received for each in found),
            sum(sum(each.doubled.values()) for each in found),
            sum(len(each.lost) for each in found),
            sum(len(each.failed) for each in found),
            f"{max(each.outage for each in found):.1f} s",
            f"{max(each.silence for each in found):.1f} s",
        ]
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return HEAD.format(seed=seed, seconds=seconds) + "\n".join([*lines, ""])
