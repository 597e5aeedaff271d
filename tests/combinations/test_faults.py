"""The short fault suite on each combination of servers; it writes docs/combinations.md.

`make test-combinations` runs it. A combination whose servers are not installed is skipped.
"""

import time

import pytest

from tests.combinations.scenes import COMBINATIONS
from tests.faults.accounting import endure
from tests.faults.inflict import WORKER
from tests.faults.test_accounting import check
from tests.service import ROOT

pytestmark = pytest.mark.long

HEAD = """# Faults on each combination of servers

Written by `make test-combinations`. As in [faults.md](faults.md), a program sends bulks of 20
emails through a running service, and each fault happens once. After each, the test looks for every
accepted message at a mail server. *Doubled* counts extra copies. *Outage* is the longest time with
no 202, *silence* the longest with no mail at the mail server; both include the fault's own time. To
set up the servers, see [connections.md](connections.md).
"""
TABLE = """
## {name}

| fault | accepted | received | doubled | lost | outage | silence |
|---|---|---|---|---|---|---|
"""


@pytest.fixture(scope="module")
def report():
    """Collect the tables, and write the document once all combinations have run."""
    tables = {}
    yield tables
    if len(tables) == len(COMBINATIONS):
        (ROOT / "docs" / "combinations.md").write_text(HEAD + "".join(tables.values()))


@pytest.mark.parametrize("combination", COMBINATIONS, ids=lambda each: each.name)
def test_every_accepted_message_is_sent(combination, report):
    if combination.missing:
        pytest.skip(f"servers are not installed: {', '.join(combination.missing)}")
    rows = []
    started = time.monotonic()
    with combination.run() as scene:
        for fault in scene.faults:
            processes = len(scene.service.children(WORKER))
            account = endure(scene.service, scene.sink, scene.traffic, fault)
            print(account)
            check(account, fault, processes)
            doubled = sum(account.doubled.values())
            figures = (account.accepted, account.received, doubled, len(account.lost))
            cells = [fault.name, *figures, f"{account.outage:.1f} s", f"{account.silence:.1f} s"]
            rows.append(f"| {' | '.join(map(str, cells))} |\n")
    assert rows
    print(f"{combination.name}: {time.monotonic() - started:.0f} s")
    report[combination.name] = TABLE.format(name=combination.name) + "".join(rows)
