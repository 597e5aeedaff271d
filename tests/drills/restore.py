"""The restore drill: a database is restored to a moment before an error, and all is accounted for.

Base backup and WAL archive are folders. What was sent after the moment is unknown to the restored
database. The drill first does what docs/high-availability.md says, and then starts another restore
as it is, to show what is sent twice.
"""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.drills.callers import Callers
from tests.drills.failover import ENDED, SERVICE
from tests.drills.machine import folder_with_sink
from tests.drills.postgres import Server, wait_until
from tests.faults.accounting import Sink
from tests.service import ROOT, Service, own_engines, running

BEFORE_SECONDS, GAP_SECONDS, END_SECONDS = 5.0, 5.0, 180.0
COPIES = int(os.environ.get("DRILL_COPIES", "50"))
"""How often the first messages are copied, so that there is a history to restore."""
ARCHIVE_SECONDS = 5
"""archive_timeout: a segment is archived so often, though it is not full."""
_NEW_ID = "(left({0}::text, 24) || substr(md5({0}::text || copy), 1, 12))::uuid"
_HISTORY = ("message", "messagecontent", "delivery", "attempt")


@dataclass
class Lost:
    """What is left of a lost service: backup, archive, what its callers know, and some figures."""

    folder: Path
    backup: Path
    archive: Path
    sink: Sink
    accepted: dict[str, float]
    """Messages with a 202 since the backup, and when, of the monotonic clock."""
    moment: str
    moment_at: float
    heads: tuple[str, str]
    """What verify_consent said of the ledgers at the moment, and at the end."""
    opted_out: list[str]
    """The contacts that withdrew their consent after the moment."""
    stopped: datetime
    stopped_at: float
    figures: dict[str, object]

    def before(self) -> set[str]:
        """Return the messages that were accepted before the moment."""
        return {message for message, at in self.accepted.items() if at < self.moment_at}


@dataclass
class Restored:
    """One restore, and what became of the messages."""

    name: str
    steps: dict[str, float] = field(default_factory=dict)
    """Seconds of each step."""
    missing_before: int = 0
    """Messages with a 202 from before the moment that it does not have."""
    missing_after: int = 0
    behind: float = 0.0
    """Seconds between the last message that it has and the end of the lost service."""
    held: int = 0
    given_up: int = 0
    doubled: int = 0
    unsent: int = 0
    unended: int = 0
    chain: str = ""
    consents: int = 0
    """Contacts that withdrew their consent, of which it knows nothing."""
    suppressed: int = 0
    """Those of them that were entered as suppressions again."""

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure a step."""
        begun = time.monotonic()
        yield
        self.steps[name] = time.monotonic() - begun


def drill(migrated: Path) -> tuple[Lost, list[Restored]]:
    """Lose a service, and restore it three times."""
    with folder_with_sink() as (folder, sink):
        lost = _lose(folder, migrated, sink)
        return lost, [_latest(lost), _as_described(lost), _as_it_is(lost)]


# --- the loss -------------------------------------------------------------------------------------


def _lose(folder: Path, migrated: Path, sink: Sink) -> Lost:
    archive, backup = folder / "archive", folder / "backup"
    primary = Server(
        folder / "a",
        archive_mode="on",
        archive_command=f"test ! -f {archive}/%f && cp %p {archive}/%f",
        archive_timeout=str(ARCHIVE_SECONDS),
    )
    subprocess.run(["cp", "-a", migrated / "postgres", primary.var], check=True)
    primary.own(archive)
    primary.own(backup)
    primary.start()
    try:
        with _service(primary, folder / "service", sink) as service:
            first = Callers(service, "history")
            with first.calling():
                time.sleep(BEFORE_SECONDS)
            wait_until(lambda: _unended(primary) == 0, "they do not end", END_SECONDS)
            _copy_history(primary)
            begun = time.monotonic()
            primary.back_up(backup)
            figures: dict[str, object] = {"backup_seconds": time.monotonic() - begun}
            callers = Callers(service, "gap")
            with callers.calling():
                _decide(callers, "OPTED_IN")
                time.sleep(BEFORE_SECONDS)
                moment = str(primary.sql("SELECT clock_timestamp()::text")[0][0])
                moment_at = time.monotonic()
                heads = _heads(primary, folder / "service")
                time.sleep(GAP_SECONDS)
                _decide(callers, "OPTED_OUT")
            opted_out = list(callers.demo["contact_ids"])
            last_heads = _heads(primary, folder / "service")
        stopped, stopped_at = datetime.now(UTC), time.monotonic()
        figures["version"] = primary.sql("SHOW server_version")[0][0]
        figures["messages"] = primary.sql("SELECT count(*) FROM messaging_message")[0][0]
        figures["size"] = primary.sql("SELECT pg_size_pretty(pg_database_size('rme'))")[0][0]
    finally:
        primary.kill()
    accepted = {message: each.at for each in callers.accepted for message in each.messages}
    figures |= {"backup": _megabytes(backup), "archive": _megabytes(archive)}
    return Lost(
        *(folder, backup, archive, sink, accepted, moment, moment_at),
        *((heads, last_heads), opted_out, stopped, stopped_at, figures),
    )


@contextmanager
def _service(server: Server, var: Path, sink: Sink) -> Iterator[Service]:
    var.mkdir(exist_ok=True)
    env = {**_env(server, var), "SMTP_URL": f"smtp+plain://127.0.0.1:{sink.port}", **SERVICE}
    with running(var, **env) as service:
        yield service


def _env(server: Server, var: Path) -> dict[str, str]:
    return {"DATABASE_URL": f"postgres://rme@{server.address}/rme", "RME_VAR": str(var)}


def _outside(server: Server, var: Path) -> dict[str, str]:
    """Return the environment of a command that runs beside a service or without one."""
    return {**own_engines(), **_env(server, var), "REDIS_URL": "unix:///nowhere"}


def _heads(server: Server, var: Path) -> str:
    """Return the heads of the ledgers, as an operator notes them."""
    return _manage(_outside(server, var), "verify_consent").strip()


def _decide(callers: Callers, status: str) -> None:
    """Record a decision of each contact, so that the ledger has entries on both sides."""
    for contact in callers.demo["contact_ids"]:
        entry = {"contactId": contact, "channel": "SMS", "category": "ALL", "status": status}
        callers.post("/consent", entry).raise_for_status()


def _copy_history(server: Server) -> None:
    """Copy the rows of all messages, under new ids."""
    for name in _HISTORY:
        columns = server.sql(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position",
            f"messaging_{name}",
        )
        names = ", ".join(f'"{column}"' for column, _ in columns)
        values = ", ".join(
            _NEW_ID.format(f't."{column}"') if kind == "uuid" else f't."{column}"'
            for column, kind in columns
        )
        server.sql(
            f"INSERT INTO messaging_{name} ({names}) SELECT {values} "
            f"FROM messaging_{name} t, generate_series(1, {COPIES}) copy"
        )


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def _unended(server: Server) -> int:
    found = server.sql(f"SELECT count(*) FROM messaging_delivery WHERE status NOT IN {ENDED}")
    return int(found[0][0])


# --- the restores ---------------------------------------------------------------------------------


@contextmanager
def _restored(lost: Lost, found: Restored, moment: str | None) -> Iterator[Server]:
    server = Server(lost.folder / found.name.replace(" ", "-"))
    try:
        with found.step("restore"):
            server.restore(lost.backup, lost.archive, moment)
        rows = server.sql("SELECT id::text FROM messaging_message")
        present = {message for (message,) in rows}
        missing = set(lost.accepted) - present
        found.missing_before = len(missing & lost.before())
        found.missing_after = len(missing - lost.before())
        found.behind = lost.stopped_at - max(
            at for message, at in lost.accepted.items() if message in present
        )
        yield server
    finally:
        if server.process:
            server.stop()


def _latest(lost: Lost) -> Restored:
    """Restore to the end of the archive, as after the loss of a server with its disk."""
    found = Restored("to the end")
    with _restored(lost, found, None):
        return found


def _as_described(lost: Lost) -> Restored:
    """Restore to the moment, step by step as the documents say."""
    found = Restored("held first")
    with _restored(lost, found, lost.moment) as server:
        var = lost.folder / "service"
        env = _outside(server, var)
        with found.step("ANALYZE"):
            server.sql("ANALYZE")
        with found.step("migrate --check"):
            _manage(env, "migrate", "--check")
        with found.step("verify_consent"):
            found.chain = _heads(server, var)
        with found.step("create_partitions"):
            _manage(env, "create_partitions")
        with found.step("hold_after_restore"):
            said = _manage(env, "hold_after_restore", "--until", lost.stopped.isoformat(), "--yes")
        found.held = int(said.split()[-1].replace(",", ""))
        with found.step("import_suppressions"):
            _suppress(lost, found, server, env)
        log = lost.sink.received()  # what the mail server has
        begun = time.monotonic()
        with _service(server, var, lost.sink) as service:
            callers = Callers(service, "after")
            callers.accept_one()
            found.steps["start, to the first 202"] = time.monotonic() - begun
            found.given_up = _decide_held(server, env, log)
            _account(lost, found, server, log)
    return found


def _suppress(lost: Lost, found: Restored, server: Server, env: dict[str, str]) -> None:
    """Enter those as suppressions who withdrew their consent after the moment."""
    found.consents = _count(
        server,
        "SELECT count(*) FROM (SELECT DISTINCT ON (contact_id) status FROM messaging_consententry "
        "WHERE channel = 'SMS' AND contact_id = ANY(%s) ORDER BY contact_id, id DESC) last "
        "WHERE status = 'OPTED_IN'",
        lost.opted_out,
    )
    file = lost.folder / "opt_outs.csv"
    rows = [f"SMS,{contact},UNSUBSCRIBE" for contact in lost.opted_out]
    file.write_text("\n".join(["channel,contactId,reason", *rows, ""]))
    _manage(env, "import_suppressions", str(file), "--org", "demo")
    found.suppressed = _count(
        server,
        "SELECT count(*) FROM messaging_suppression WHERE channel = 'SMS' AND contact_id = ANY(%s)",
        lost.opted_out,
    )


def _count(server: Server, statement: str, contacts: list[str]) -> int:
    return int(server.sql(statement, contacts)[0][0])


def _as_it_is(lost: Lost) -> Restored:
    """Restore to the moment and start everything."""
    found = Restored("as it is")
    with _restored(lost, found, lost.moment) as server:
        log = lost.sink.received()
        with _service(server, lost.folder / "service", lost.sink):
            _account(lost, found, server, log)
    return found


def _manage(env: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{arguments[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def _decide_held(server: Server, env: dict[str, str], log: "Counter[str]") -> int:
    """Give up what the mail server has of what is held, send the rest again; return how many."""
    rows = server.sql(
        "SELECT id::text, message_id::text, organization_id FROM messaging_delivery "
        "WHERE status = 'UNKNOWN' AND due_at IS NULL"
    )
    sent = [message for key, message, _ in rows if log[key]]
    for organization in {organization for _, _, organization in rows}:
        common = ("decide_held", "--organization", organization, "--reason")
        if sent:
            reason = "the mail server has it"
            _manage(env, *common, reason, "--give-up", "--message", *sent)
        _manage(env, *common, "the mail server does not have it", "--send-again")
    return len(sent)


def _account(lost: Lost, found: Restored, server: Server, log: "Counter[str]") -> None:
    """Count what the mail server gets twice, and what has not been sent in the end."""
    try:
        wait_until(lambda: _unended(server) == 0, "they do not end", END_SECONDS)
    except TimeoutError:
        found.unended = _unended(server)
    now, before = lost.sink.received(), lost.before()
    found.doubled = sum(count - log[key] for key, count in now.items() if log[key])
    rows = server.sql("SELECT id::text, message_id::text FROM messaging_delivery")
    found.unsent = sum(message in before and not now[key] for key, message in rows)


def failures(lost: Lost, restores: Sequence[Restored]) -> list[str]:
    """Return in what the drill went otherwise than it must."""
    latest, held, as_it_is = restores
    found = [
        f"{each.name}: {each.missing_before} messages from before the moment are missing"
        for each in restores
        if each.missing_before
    ]
    if latest.behind > 2 * ARCHIVE_SECONDS:
        found.append(f"the archive is {latest.behind:.1f} s behind")
    if held.chain != lost.heads[0]:
        found.append(f"the ledgers are not those of the moment: {held.chain}; {lost.heads[0]}")
    if lost.heads[0] == lost.heads[1] or not held.consents:
        found.append("nobody withdrew consent after the moment: the drill does not bite")
    if not held.consents == held.suppressed == len(lost.opted_out):
        found.append(
            f"{len(lost.opted_out)} withdrew their consent after the moment: of {held.consents} it "
            f"knows nothing, and {held.suppressed} are suppressed again"
        )
    if held.doubled or held.unsent or held.unended:
        found.append(f"{held.doubled} sent twice, {held.unsent} not sent, {held.unended} open")
    if not as_it_is.doubled:
        found.append("nothing is sent twice without the hold: the drill does not bite")
    if not held.missing_after:
        found.append("nothing was accepted after the moment")
    return found
