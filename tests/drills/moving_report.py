"""The verdict of the drill of a move, and its report, docs/move-drill.md."""

from tests.drills import moving
from tests.drills.callers import BULK, THREADS
from tests.drills.machine import described
from tests.drills.moving import Account
from tests.service import ROOT

PATH = ROOT / "docs" / "move-drill.md"
_TEXT = """# Drill: moving an organization

Written by `make drill-move`, on {machine}. Two cells, each with its own PostgreSQL, Valkey, web
process and workers, and a [router](cells.md) run on loopback. {threads} programs send for
one organization through the router, one in {bulk_every} requests a bulk of {bulk} emails, others an
email or an SMS, some scheduled, and repeat each request with its `Idempotency-Key` until it has its
202. One more program records decisions of consent, each until it has its 201. A mail server and an
SMS gateway, in processes of their own, take the messages; the gateway reports each SMS to its
callback through the router, again each half second until that is answered 200. A webhook endpoint
is told of what is sent, delivered and decided. After {before:.0f} s `move_organization` moves the
organization to the other cell; the programs go on until {after:.0f} s after its end. Then every
message with a 202 is looked for in the target's database and at the far side, every decision in the
target's ledger, every report in the messages' statuses (all SMS are DELIVERED), and every event at
the receiver of webhooks.

| | |
|---|---|
| messages a second | {rate:.0f} |
| messages with a 202 | {accepted:,} |
| of them lost: not in the target | {lost} |
| accepted after the switch, and in the cell that was left | {both} |
| not sent | {unsent} |
| sent twice | {doubled} |
| decisions with a 201 | {decisions.made:,} |
| of them lost: not in the target's ledger | {decisions.lost} |
| recorded twice | {decisions.doubled} |
| people shown with another decision than their last | {decisions.differ} |
| SMS that the gateway reported | {reports.made:,} |
| of the reports lost | {reports.lost} |
| reports that took more than one call | {reports.repeated} |
| events for the webhook endpoint | {events.made:,} |
| of them lost | {events.lost} |
| told more than once, as webhooks may be | {events.repeated} |
| copying, while all goes on | {copying:,} ms |
| leaving: nothing new is sent | {leaving:,} ms |
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
