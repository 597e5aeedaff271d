"""The verdict of the drill of a move, and its report, docs/move-drill.md."""

from tests.drills import moving
from tests.drills.callers import BULK, THREADS
from tests.drills.machine import described
from tests.drills.moving import Account
from tests.service import ROOT

PATH = ROOT / "docs" / "move-drill.md"
_TEXT = """# Drill: moving an organization

Written by `make drill-move`, on {machine}. Two cells, each with its own PostgreSQL, Valkey, web
process and workers, and a [router](cells.md) run on loopback.

- {threads} programs send for one organization through the router. One in {bulk_every} requests is a
  bulk of {bulk} emails, the others are an email or an SMS, some scheduled. The programs repeat each
  request with its `Idempotency-Key` until they get a 202. One more program records decisions of
  consent, each until it gets a 201.
- A mail server and an SMS gateway, in separate processes, accept the messages. The gateway reports
  each SMS to its callback through the router, every half second until it gets a 200. A webhook
  endpoint receives the events of sends, deliveries and decisions.
- After {before:.0f} s `move_organization` moves the organization to the other cell. The programs
  continue until {after:.0f} s after its end.

Then the drill looks for every message with a 202 in the target's database and at the mail server or
gateway, every decision in the target's ledger, every report in the messages' statuses (all SMS are
DELIVERED), and every event at the webhook endpoint.

| | |
|---|---|
| messages a second | {rate:.0f} |
| messages with a 202 | {accepted:,} |
| messages lost: not in the target | {lost} |
| accepted after the switch, but in the old cell | {both} |
| not sent | {unsent} |
| sent twice | {doubled} |
| decisions with a 201 | {decisions.made:,} |
| decisions lost: not in the target's ledger | {decisions.lost} |
| recorded twice | {decisions.doubled} |
| people whose last decision the target doesn't show | {decisions.differ} |
| SMS that the gateway reported | {reports.made:,} |
| reports lost | {reports.lost} |
| reports that took more than one call | {reports.repeated} |
| events for the webhook endpoint | {events.made:,} |
| events lost | {events.lost} |
| events sent more than once, which webhooks allow | {events.repeated} |
| copying, while everything continues | {copying:,} ms |
| leaving: the cell sends nothing new | {leaving:,} ms |
| **paused**: until the target serves it | **{paused:,} ms** |
| longest time between two 202s, as the programs saw it | {outage:,.0f} ms |
| longest time between two mails | {silence:,.0f} ms |
| answers | {answers} |
| the ledger in the target | {ledger} |

The command wrote: *{rows}*.
"""


def failures(account: Account) -> list[str]:
    """Return what did not end as it must."""
    wrong = {
        "messages lost": account.lost,
        "messages accepted by both": account.both,
        "messages not sent": account.unsent,
        "messages sent twice": account.doubled,
        "answers that no caller should see": len(account.odd),
        "decisions lost": account.decisions.lost,
        "decisions recorded twice": account.decisions.doubled,
        "people shown with another decision": account.decisions.differ,
        "reports lost": account.reports.lost,
        "events lost": account.events.lost,
    }
    return [f"{name}: {count}" for name, count in wrong.items() if count]


def write(account: Account) -> None:
    """Write the report."""
    steps = account.milliseconds
    PATH.write_text(
        _TEXT.format(
            machine=described(),
            threads=THREADS,
            bulk_every=moving.BULKS_EVERY,
            bulk=BULK,
            before=moving.BEFORE_SECONDS,
            after=moving.AFTER_SECONDS,
            rate=account.rate,
            accepted=account.accepted,
            lost=account.lost,
            both=account.both,
            unsent=account.unsent,
            doubled=account.doubled,
            decisions=account.decisions,
            reports=account.reports,
            events=account.events,
            copying=steps["copying"],
            leaving=steps["leaving"],
            paused=steps["paused"],
            outage=account.outage * 1000,
            silence=account.silence * 1000,
            answers=", ".join(
                f"{name}: {count:,}" for name, count in sorted(account.answers.items())
            ),
            ledger=account.ledger.partition(": ")[2],
            rows=account.rows,
        )
    )
