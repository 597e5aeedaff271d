"""The state of the PostgreSQL server: whether it accepts writes, and when it restarted last."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

RESTART = timedelta(minutes=15)
"""A restart is recent for so long: it explains calls that got a 503."""
CRASH = timedelta(days=1)
"""A restart after a crash is recent for so long: somebody has to read the server's log."""

LAST_START = """
SELECT greatest(s.at, r.at) AS at, coalesce(r.at >= s.at, false) AS is_after_crash
FROM (SELECT pg_postmaster_start_time() AS at) s,
  (SELECT CASE WHEN a.stats_reset = b.stats_reset THEN a.stats_reset END AS at
   FROM pg_stat_archiver a, pg_stat_bgwriter b) r"""
"""When the server started to take connections, and whether after a crash.

After a crash of one of its processes the server restarts all others and keeps its own start time.
But it throws away its statistics, as it does after a crash of the machine or a SIGKILL: all of them
begin at the same moment then. A reset by hand begins one of them. (Source: `pgstat_discard_stats`
of PostgreSQL 15 to 18; a standby discards them too when it starts.)
"""
_STATE = f"""
SELECT current_setting('transaction_read_only') = 'on', l.at, l.is_after_crash,
  statement_timestamp() - l.at, l.at > (SELECT min(applied) FROM django_migrations)
FROM ({LAST_START}) l"""


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart of the server. Whether somebody planned it isn't known, unless it crashed."""

    at: datetime
    age: timedelta
    is_after_crash: bool

    @property
    def is_recent(self) -> bool:
        return self.age < (CRASH if self.is_after_crash else RESTART)


@dataclass(frozen=True, slots=True)
class ServerState:
    """The state of the server."""

    is_read_only: bool
    restart: Restart | None
    """The last one since the service was installed."""


def read() -> ServerState:
    """Read the state, by one statement. Raises django.db.Error."""
    with connection.cursor() as cursor:
        cursor.execute(_STATE)
        is_read_only, at, is_after_crash, age, is_restart = cursor.fetchone()
    restart = Restart(at, age, is_after_crash) if is_restart else None
    return ServerState(is_read_only, restart)
