"""The restore drill's report, docs/restore-drill.md."""

from collections.abc import Sequence

from tests.drills import restore
from tests.drills.machine import described, titled
from tests.drills.restore import Lost, Restored
from tests.service import ROOT

PATH = ROOT / "docs" / "restore-drill.md"
_PRESENT = (
    *("restored", "missing, from before the moment"),
    *("missing, from after it", "behind the end of the lost service"),
)
_DOUBT = (
    *("restored to the moment, and", "held", "given up, as the mail server had it", "sent twice"),
    *("accepted before the moment and never sent", "not ended"),
)
_TEXT = """# Restore drill

Written by `make drill-restore`, on {machine}.
PostgreSQL {version} archives its WAL into a folder (`archive_timeout = {archive_timeout}`). The
drill makes the base backup while rme runs. Then programs send emails, and people give and withdraw
consent. Meanwhile the drill notes a moment: somebody is about to make an error. {gap:.1f} s later
it stops rme and takes its server away.

| size | |
|---|---|
| messages | {messages} |
| database | {size} |
| base backup | {backup:.0f} MB, in {backup_seconds:.1f} s |
| WAL archived since the server was made | {archive:.0f} MB |
| accepted (202) after the backup | {accepted} |
| accepted between the backup and the moment | {before} |

## Restored messages

{present}

*To the end*: you lose a server with its disk, and everything that the archive didn't have yet (the
recovery point, RPO). If you have a synchronous standby, this only happens if you lose all machines
at once. The other two are restored to the moment, so they are behind by choice.

## Messages in doubt

These were due between the moment and the end of the lost service. The restored database shows them
as unsent, and only the mail server knows.

{doubt}

*Held first* follows [the steps](high-availability.md#restoring-to-a-point-in-time).
*As it is* starts everything at once.

You also lose consent that people withdrew after the moment. {opted_out} people did so: *held first*
knew about {known}, and the drill entered {suppressed} as suppressions before it started.

## Times

{steps}

`manage.py verify_consent` printed the same as at the moment, on the lost database:

```
{chain}
```
"""


def write(lost: Lost, restores: Sequence[Restored]) -> None:
    """Write the report."""
    held, as_it_is = restores[1:]
    steps = [[name, f"{seconds:.1f}"] for name, seconds in held.steps.items()]
    steps.append(["**all**", f"{sum(held.steps.values()):.1f}"])
    PATH.write_text(
        _TEXT.format(
            machine=described(),
            archive_timeout=restore.ARCHIVE_SECONDS,
            gap=lost.stopped_at - lost.moment_at,
            accepted=len(lost.accepted),
            before=len(lost.before()),
            present=titled(_PRESENT, [_present(each) for each in restores]),
            doubt=titled(_DOUBT, [_doubt(each) for each in (held, as_it_is)]),
            steps=titled(("step", "seconds"), steps),
            chain=held.chain,
            opted_out=len(lost.opted_out),
            known=len(lost.opted_out) - held.consents,
            suppressed=held.suppressed,
            **lost.figures,
        )
    )


def _present(each: Restored) -> list[object]:
    return [each.name, each.missing_before, each.missing_after, f"{each.behind:.1f} s"]


def _doubt(each: Restored) -> list[object]:
    return [each.name, each.held, each.given_up, each.doubled, each.unsent, each.unended]
