"""The failover drill's verdict and its report, docs/failover-drill.md."""

from collections.abc import Sequence

from tests.drills import failover
from tests.drills.failover import Account
from tests.drills.machine import described, titled
from tests.service import ROOT

PATH = ROOT / "docs" / "failover-drill.md"
_ACCOUNTS = (
    *("the primary is", "`synchronous_commit`", "accepted", "lost", "not ended", "not sent"),
    *("doubled in the window", "doubled otherwise", "repeated keys with the same answer"),
)
_TIMES = (
    *("the primary is", "`synchronous_commit`", "promoted after", "longest time without a 202"),
    *("first mail after", "503", "broken connections", "other answers", "health at the end"),
    "the old primary is a standby again after",
)
_TEXT = """# Failover drill

Written by `make drill-failover`, on {machine}. A primary and a standby ({engine}) run on
loopback, and the service on them by `DATABASE_URL=postgres://rme@a,b/rme`. {threads} programs
send emails, one in {bulk_every} requests a bulk of {bulk}, some scheduled, and repeat each
request with its `Idempotency-Key` until it has its 202; a mail server in a process of its own
takes the mails. After {before:.0f} s the primary is lost, the standby is promoted at once, and
{after:.0f} s later the sending ends. Then every message that had a 202 is looked for in the
promoted database, and at the mail server. How long a manager takes to notice a loss comes on
top of these times. `LEASE_SECONDS=6` and `UNKNOWN_SECONDS=2` shorten the wait for the end.

How the primary is lost:

- *killed*: all of its processes by SIGKILL at once.
- *hangs*: its processes are stopped (SIGSTOP); its sockets stay open, and new connections to it are
  made and get no answer. Nobody fences it.
- *cut off, then killed*: its standby receives nothing for {lag:.0f} s, and then it is killed.
- *cut off, restarted, then killed*: its standby cannot be reached any more; after {alone:.0f} s it
  is killed and started again, has its clients for {alone:.0f} s, and is lost for good. What it had
  committed without its standby becomes visible by the restart; it must not be taken for accepted.
- *lives on for a while*: nobody stops it for {split:.0f} s after its standby was promoted, and the
  service stays connected to it (a split); then it is killed.

`async` stands for a standby for which no commit waits. Those runs show what it costs, and that the
drill notices.

{accounts}

*Lost* have a 202 and are not in the promoted database. *Doubled in the window*: copies beyond
the first of messages whose outcome was not known when the primary was lost, in a category that
sends again ([architecture.md](architecture.md#what-happens-on-each-fault)); *otherwise*: all
others. *Repeated keys*: the last {repeated} requests that had their 202 before the loss, sent
again after.

{times}
"""


def write(accounts: Sequence[Account]) -> None:
    """Write the report."""
    PATH.write_text(
        _TEXT.format(
            machine=described(),
            engine=accounts[0].version,
            threads=failover.THREADS,
            bulk=failover.BULK,
            bulk_every=failover.BULK_EVERY,
            before=failover.BEFORE_SECONDS,
            after=failover.AFTER_SECONDS,
            lag=failover.LAG_SECONDS,
            alone=failover.ALONE_SECONDS,
            split=failover.SPLIT_SECONDS,
            repeated=failover.REPEATED,
            accounts=titled(_ACCOUNTS, [_account(each) for each in accounts]),
            times=titled(_TIMES, [_times(each) for each in accounts]),
        )
    )


def _account(each: Account) -> list[object]:
    return [
        *(each.scene.name, f"`{each.scene.level}`", each.accepted, each.lost, each.unended),
        *(each.unsent, each.doubled, each.doubled_otherwise),
        f"{each.repeated_alike} of {each.repeated}",
    ]


def _times(each: Account) -> list[object]:
    kinds = {"202": 0, "503": 0, **each.answers}
    broken = sum(count for kind, count in kinds.items() if not kind.isdigit())
    other = {k: n for k, n in kinds.items() if k.isdigit() and k not in ("202", "503")}
    others = ", ".join(f"{kind}: {count}" for kind, count in sorted(other.items())) or "none"
    return [
        *(each.scene.name, f"`{each.scene.level}`", f"{each.promoted:.1f} s"),
        *(f"{each.outage:.1f} s", f"{each.silence:.1f} s", kinds["503"], broken, others),
        *(each.health, f"{each.rejoined:.1f} s"),
    ]


def failures(each: Account) -> list[str]:
    """Return in what a scene went otherwise than it must."""
    found = []
    alone = each.scene.level == "async"
    if alone and not each.lost:
        found.append("nothing is lost without a synchronous standby: the drill does not bite")
    if not alone and each.lost:
        found.append(f"{each.lost} messages with a 202 are lost")
    if not alone and each.doubled_otherwise:
        found.append(f"{each.doubled_otherwise} copies were sent outside the window")
    if not alone and each.repeated_alike < each.repeated:
        found.append("a repeated key got another answer")
    if each.unended or each.unsent:
        found.append(f"{each.unended} messages have not ended, {each.unsent} were not sent")
    if odd := set(each.answers) & {"500", "401", "404"}:
        found.append(f"answers with {', '.join(sorted(odd))}")
    return [f"{each.scene.name}, {each.scene.level}: {text}" for text in found]
