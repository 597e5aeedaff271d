"""The restore drill's report, docs/restore-drill.md."""

from collections.abc import Sequence

from tests.drills import restore
from tests.drills.machine import described, titled
from tests.drills.restore import Lost, Restored
from tests.service import ROOT

PATH = ROOT / "docs" / "restore-drill.md"
_PRESENT = (
    *("restored", "missing, of those from before the moment"),
    *("missing, of those from after it", "behind the end of the lost service"),
)
_DOUBT = (
    *("restored to the moment, and", "held", "given up, as the mail server had it", "sent twice"),
    *("accepted before the moment and never sent", "not ended"),
)
_TEXT = """# Restore drill

Written by `make drill-restore`, on {machine}.
PostgreSQL {version} archives its WAL into a folder (`archive_timeout = {archive_timeout}`); the
base backup is made while the service runs. Then programs send emails, and consent is given and
withdrawn. Between, a moment is noted: somebody is about to make an error. {gap:.1f} s later the
service is stopped, and its server is lost.

| size | |
|---|---|
| messages | {messages} |
| database | {size} |
| base backup | {backup:.0f} MB, in {backup_seconds:.1f} s |
| WAL archived since the server was made | {archive:.0f} MB |
| accepted (202) after the backup | {accepted} |
| of these before the moment | {before} |

## What a restore brings back

{present}

*To the end* is the loss of a server with its disk: what is missing is what the archive did not have
yet (the recovery point, RPO). With a synchronous standby that is for the loss of all machines at
once. The other two are restored to the moment, so they are behind by choice.

## What is in doubt

All that was due between the moment and the end of the lost service: the restored database takes it
for not sent, and nobody knows but the mail server.

{doubt}

*Held first* does what [the steps](high-availability.md#restoring-to-a-moment) say. *As it is*
starts everything at once.

Consent that was withdrawn after the moment is lost as well: of {opted_out} people who did so,
*held first* knew of {known}, and {suppressed} were entered as suppressions before it started.

## How long it took

{steps}

`manage.py verify_consent` said what it had said of the lost database at the moment:

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
