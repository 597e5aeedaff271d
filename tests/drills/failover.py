"""The failover drill: a primary is lost under load, its standby takes its place, and every 202 is
accounted for.

The standby is promoted at once: how long a manager takes to notice a loss comes on top of that.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import requests

from tests.drills.callers import BULK, BULK_EVERY, THREADS, Accepted, Callers
from tests.drills.machine import folder_with_sink, machine_folder
from tests.drills.postgres import Server, wait_until
from tests.faults.accounting import IN_DOUBT, Sink
from tests.service import ROOT, own_engines, running

__all__ = ["BULK", "BULK_EVERY", "SCENES", "THREADS", "Account", "Scene", "migrated_server", "play"]

BEFORE_SECONDS, AFTER_SECONDS = 5.0, 5.0
LAG_SECONDS, SPLIT_SECONDS, ALONE_SECONDS = 2.0, 6.0, 6.0
END_SECONDS = 180.0
REPEATED = 50
"""Requests that had their 202 before the loss and are repeated after it."""
ENDED = ("SENT", "DELIVERED", "FAILED", "BLOCKED", "CANCELLED", "EXPIRED")
SERVICE = {"LEASE_SECONDS": "6", "UNKNOWN_SECONDS": "2", "OUTBOUND_OPEN_HOSTS": "127.0.0.1"}


@dataclass(frozen=True)
class Scene:
    """How the primary is lost."""

    name: str
    level: str = "on"
    """synchronous_commit; `async`: commits do not wait for the standby."""
    lag: bool = False
    """The standby receives nothing in the last seconds before the loss."""
    split: bool = False
    """The primary lives on for some seconds beside the promoted standby, and has its clients."""
    hang: bool = False
    """The primary keeps its sockets open and answers nothing."""
    restart: bool = False
    """The primary is cut off and then restarted: commits that nobody confirmed become visible."""


SCENES = (
    Scene("killed"),
    Scene("killed", "remote_apply"),
    Scene("hangs", hang=True),
    Scene("cut off, then killed", lag=True),
    Scene("cut off, restarted, then killed", restart=True),
    Scene("cut off, then killed", "async", lag=True),
    Scene("lives on for a while", split=True),
    Scene("lives on for a while", "async", split=True),
)


@dataclass
class Account:
    """What became of all that was accepted in a scene."""

    scene: Scene
    accepted: int
    lost: int
    """Messages with a 202 that the promoted server does not have."""
    unended: int
    unsent: int
    """Messages that ended without reaching the mail server."""
    doubled: int
    """Copies beyond the first whose outcome was in doubt: the stated window."""
    doubled_otherwise: int
    promoted: float
    """Seconds from the loss until the standby accepted writes."""
    outage: float
    """The longest time between two 202s, in seconds."""
    silence: float
    """Seconds until the first mail after the loss."""
    repeated: int
    repeated_alike: int
    """Repeated requests that were answered with the same messages."""
    answers: dict[str, int]
    health: str
    version: str
    rejoined: float
    """Seconds until the lost server is a standby again, rewound."""


def play(scene: Scene, migrated: Path) -> Account:
    """Play a scene on a copy of a migrated server's folder."""
    with folder_with_sink() as (folder, sink):
        primary, standby = Server(folder / "a"), Server(folder / "b")
        subprocess.run(["cp", "-a", migrated / "postgres", primary.var], check=True)
        try:
            primary.start()
            primary.keep_wal()
            standby.follow(primary)
            if scene.level != "async":
                primary.require_standby(scene.level)
            url = f"postgres://rme@{primary.address},{standby.address}/rme"
            mail = f"smtp+plain://127.0.0.1:{sink.port}"
            var = folder / "service"
            var.mkdir()
            with running(var, DATABASE_URL=url, SMTP_URL=mail, **SERVICE) as service:
                return _lose(scene, primary, standby, Callers(service, scene.level), sink)
        finally:
            for server in (primary, standby):
                if server.process:
                    server.stop()


def _lose(scene: Scene, primary: Server, standby: Server, callers: Callers, sink: Sink) -> Account:
    with callers.calling():
        time.sleep(BEFORE_SECONDS)
        wait_until(lambda: len(callers.accepted) > 50, "nothing is accepted")
        if scene.lag:
            primary.freeze_wal_sender()
            time.sleep(LAG_SECONDS)
        if scene.restart:
            _restart_alone(primary, standby)
        lost_at = time.monotonic()
        if scene.hang:
            primary.freeze()
        elif not scene.split:
            primary.kill()
        standby.thaw()
        standby.promote()
        promoted = time.monotonic() - lost_at
        if scene.split:
            time.sleep(SPLIT_SECONDS)
            primary.kill()
        back_at = time.monotonic()
        mails = sink.ids.stat().st_size
        wait_until(lambda: sink.ids.stat().st_size > mails, "no mail any more")
        silence = time.monotonic() - lost_at
        wait_until(lambda: any(e.begun > back_at for e in callers.accepted), "no 202 any more")
        time.sleep(AFTER_SECONDS)
    if scene.hang:
        primary.kill()
    before = [each for each in callers.accepted if each.at < lost_at]
    times = sorted(each.at for each in callers.accepted)
    known = _ended(standby, callers.messages)
    return Account(
        scene=scene,
        accepted=len(callers.messages),
        promoted=promoted,
        outage=max(after - before for before, after in pairwise(times)),
        silence=silence,
        **known,
        **_mails(standby, sink, callers.messages),
        **_repeat(callers, before),
        answers=dict(callers.answers),
        health=_health(callers),
        version=f"PostgreSQL {standby.sql('SHOW server_version')[0][0]}",
        rejoined=_rejoin(primary, standby),
    )


def _restart_alone(primary: Server, standby: Server) -> None:
    """Kill the primary and start it again, while its standby cannot be reached."""
    primary.freeze_wal_sender()
    standby.freeze()
    time.sleep(ALONE_SECONDS)
    primary.kill()
    primary.start()
    time.sleep(ALONE_SECONDS)


def _ended(server: Server, accepted: set[str]) -> dict[str, int]:
    """Wait until what the server knows has ended; count what it does not know."""
    waiting = f"SELECT count(*) FROM messaging_delivery WHERE status NOT IN {ENDED}"
    with suppress(TimeoutError):  # those that have not ended are counted
        wait_until(lambda: server.sql(waiting) == [(0,)], "they have not ended", END_SECONDS)
    rows = server.sql("SELECT message_id::text, status FROM messaging_delivery")
    ends = dict(rows)
    return {
        "lost": len(accepted - set(ends)),
        "unended": sum(ends.get(each, "SENT") not in ENDED for each in accepted),
    }


def _mails(server: Server, sink: Sink, accepted: set[str]) -> dict[str, int]:
    received = sink.received()
    in_doubt = {key for (key,) in server.sql(IN_DOUBT)}
    extra = {key: count - 1 for key, count in received.items() if count > 1}
    excused = sum(count for key, count in extra.items() if key in in_doubt)
    rows = server.sql("SELECT id::text, message_id::text FROM messaging_delivery")
    return {
        "unsent": sum(message in accepted and not received[key] for key, message in rows),
        "doubled": excused,
        "doubled_otherwise": sum(extra.values()) - excused,
    }


def _repeat(callers: Callers, before: list[Accepted]) -> dict[str, int]:
    """Repeat the last requests that had their 202 before the loss."""
    session = requests.Session()
    latest = sorted(before, key=lambda each: each.at)[-REPEATED:]
    alike = sum(callers.send(session, e.key, e.body) == e.messages for e in latest)
    return {"repeated": len(latest), "repeated_alike": alike}


def _rejoin(old: Server, new: Server) -> float:
    """Make the lost server the standby of its successor; return how long that took."""
    begun = time.monotonic()
    old.rejoin(new)
    new.require_standby("on")
    return time.monotonic() - begun


def _health(callers: Callers) -> str:
    session = requests.Session()
    session.headers.update(callers._headers)
    answer = session.get(f"{callers.demo['base_url']}/health", timeout=20)
    return str(answer.json()["status"])


@contextmanager
def migrated_server() -> Iterator[Path]:
    """Make a server's folder with a migrated database."""
    with machine_folder() as folder:
        server = Server(folder)
        server.start()
        try:
            env = {**own_engines(), "DATABASE_URL": f"postgres://rme@{server.address}/rme"}
            env |= {"RME_VAR": str(folder), "REDIS_URL": "unix:///nowhere"}
            command = [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0"]
            subprocess.run(command, cwd=ROOT, env=env, check=True)
        finally:
            server.stop()
        yield folder
