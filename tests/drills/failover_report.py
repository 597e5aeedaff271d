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
loopback, and rme uses both (`DATABASE_URL=postgres://rme@a,b/rme`). {threads} programs send
emails, some scheduled, and one in {bulk_every} requests is a bulk of {bulk}. They repeat each
request with its `Idempotency-Key` until they get a 202. A mail server runs in a separate process.
After {before:.0f} s the drill takes the primary away and promotes the standby at once. The
programs stop {after:.0f} s later. Then the drill looks for every message with a 202 in the
promoted database and at the mail server. Add the time that your manager takes to notice the loss.
`LEASE_SECONDS=6` and `UNKNOWN_SECONDS=2` shorten the wait for the end.

Ways to lose the primary:

- *killed*: SIGKILL ends all its processes at once.
- *hangs*: SIGSTOP stops its processes. Its sockets stay open, and new connections get no answer.
  Nobody fences it.
- *cut off, then killed*: its standby receives nothing for {lag:.0f} s, then the drill kills it.
- *cut off, restarted, then killed*: it can't reach its standby any more. After {alone:.0f} s the
  drill kills and restarts it, leaves it its clients for {alone:.0f} s, and takes it away for good.
  The restart shows commits that its standby never got, and rme must not accept those.
- *lives on for a while*: it runs for {split:.0f} s after the promotion, and rme stays connected to
  it (a split). Then the drill kills it.

`async` is a standby that no commit waits for. Those runs show its cost, and prove that the drill
notices lost messages.

{accounts}

*Lost*: messages with a 202 that aren't in the promoted database. *Doubled in the window*: extra
copies of messages whose outcome was unknown at the loss, in a category that resends
([architecture.md](architecture.md#faults)). *Doubled otherwise*: all other copies. *Repeated keys*:
the drill repeats the last {repeated} requests that got a 202 before the loss.

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
