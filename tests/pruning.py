"""Statements that PostgreSQL 18 cannot execute safely: docs/architecture.md, "Locks and pruning".

`Recorder` collects what this process executes on partitioned tables through Django's connections,
`read_log` what a server has executed for any process and connection, and `refused` plans it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import psycopg
from django.db import connections
from django.db.backends.signals import connection_created
from psycopg import sql as literals

TABLES = ("message", "messagecontent", "delivery", "attempt", "event")
"""The partitioned tables of messaging. Programs without Django's apps import this module too."""
_TABLE = re.compile(rf"\bmessaging_({'|'.join(TABLES)})\b")
_PLANNED = re.compile(r"\s*(WITH|SELECT|INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
"""Whatever else there is, such as CREATE TRIGGER, has no plan."""
_LOCKS = re.compile(r"\bFOR (NO KEY )?UPDATE\b|\bFOR (KEY )?SHARE\b|\b(UPDATE|DELETE|MERGE)\b")
_LOCKING_NODE = re.compile(r"\{LOCKROWS:|\{MODIFYTABLE:.*?:operation[245]:")
_PRUNED_AT_RUN_TIME = ":exec_pruning_steps("

_NESTED = (
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off; "
    "SET enable_material = off"
)
"""Joins that look rows up one by one are the ones that prune at run time."""


class Executed(NamedTuple):
    """A statement that was executed, with its parameters."""

    text: str
    parameters: Any
    prepared: bool
    """Its parameters were sent apart from its text."""
    setup: tuple[str, ...] = ()
    """The statements that make the temporary tables that it names."""


def _is_short(statement: Executed) -> bool:
    """Return whether a plan with the parameters in it is worth printing."""
    return len(str(statement.parameters)) < 10_000


def _is_checked(text: str) -> bool:
    """Return whether a statement locks or changes rows of partitioned tables."""
    return bool(_PLANNED.match(text) and _TABLE.search(text) and _LOCKS.search(text.upper()))


class Recorder:
    """The statements on partitioned tables that lock or change rows; each text once."""

    def __init__(self) -> None:
        self.found: dict[str, Executed] = {}
        self._seen: set[str] = set()

    def __call__(
        self,
        execute: Callable[..., object],
        text: str,
        parameters: Any,
        many: bool,
        context: dict[str, Any],
    ) -> object:
        """Note a statement, as a wrapper of Django's connections, and execute it."""
        if isinstance(text, str) and text not in self._seen:
            executed = Executed(text, parameters[0] if many else parameters, not context["cursor"])
            if not _is_checked(text):
                self._seen.add(text)
            elif executed.prepared or _is_short(executed):  # else another test has a shorter one
                self._seen.add(text)
                self.found[text] = executed
        return execute(text, parameters, many, context)

    def take(self) -> list[Executed]:
        """Return what was found since the last call."""
        found, self.found = list(self.found.values()), {}
        return found

    @contextmanager
    def recording(self) -> Iterator["Recorder"]:
        """Record what all connections of this process execute meanwhile."""

        def attach(connection: Any, **_: object) -> None:
            if self not in connection.execute_wrappers:
                connection.execute_wrappers.insert(0, self)

        connection_created.connect(attach, weak=False)
        for each in connections.all(initialized_only=True):
            attach(each)
        try:
            yield self
        finally:
            connection_created.disconnect(attach)
            for each in connections.all(initialized_only=True):
                if self in each.execute_wrappers:
                    each.execute_wrappers.remove(self)


LOG_STATEMENTS = "log_statement = 'all'\nlog_parameter_max_length = 0\n"
"""What `read_log` needs in a server's postgresql.auto.conf."""
_LOGGED = re.compile(
    r"[^\[]{1,40}\[(\d+)\] LOG:  (?:statement|execute [^:]{1,80}): (.*)", re.DOTALL
)
_TEMPORARY = re.compile(r"\s*CREATE TEMP TABLE (\w+)")
_VALUE = re.compile(r"'(?:[^']|'')*'|\b\d+\b|\$\d+")
_VALUES = re.compile(r"\?(?:, \?)+")
_read: set[str] = set()
"""The texts without their values that a log had before."""


def read_log(log: Path, begin: int = 0) -> list[Executed]:
    """Return what the log has of statements that lock or change rows of partitioned tables.

    A statement that differs from an earlier one in its values alone is left out. `begin` is where
    they begin in the log; temporary tables of theirs may be older.
    """
    statements = []
    temporary: dict[str, dict[str, str]] = {}
    for position, session, text in _entries(log):
        if table := _TEMPORARY.match(text):
            temporary.setdefault(session, {})[table[1]] = text
        elif position >= begin and _is_checked(text):
            kind = _VALUES.sub("?", _VALUE.sub("?", text))
            if kind not in _read:
                _read.add(kind)
                statements.append(_logged(text, tuple(temporary.get(session, {}).values())))
    return statements


def _logged(text: str, setup: tuple[str, ...]) -> Executed:
    with_places, count = re.subn(r"\$\d+", "%s", text.replace("%", "%%"))
    if count:
        return Executed(with_places, [None] * count, prepared=True, setup=setup)
    return Executed(text, None, prepared=False, setup=setup)


def _entries(log: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the position, the session and the text of each statement.

    Its further lines begin with a tab.
    """
    entry, begin, position = "", 0, 0
    with log.open("rb") as lines:
        for line in (*lines, b"end"):
            if line.startswith(b"\t"):
                entry += line[1:].decode(errors="replace")
            else:
                if logged := _LOGGED.match(entry):
                    yield begin, logged[1], logged[2]
                entry, begin = line.decode(errors="replace"), position
            position += len(line)


_WITH_FEW_PARTITIONS = """
SELECT relname FROM pg_class c WHERE relkind = 'p' AND relname LIKE 'messaging_%'
  AND (SELECT count(*) FROM pg_inherits WHERE inhparent = c.oid) < 2
"""
"""PostgreSQL plans a table with one partition as if it were none."""


class Planner:
    """Plans statements on a connection of its own, without executing them."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
        self._connection.execute("SET client_min_messages = log")
        self._connection.add_notice_handler(
            lambda notice: self._plans.append(notice.message_detail or "")
        )
        self._plans: list[str] = []

    def __enter__(self) -> Self:
        few = self._connection.execute(_WITH_FEW_PARTITIONS).fetchall()
        assert few == [], "a test dropped partitions for good: no plan can show a fault"
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def prunes_under_lock(self, statement: Executed) -> bool:
        """Return whether a plan of a statement locks or changes rows, and prunes as it runs."""
        return any(
            _LOCKING_NODE.search(plan) and _PRUNED_AT_RUN_TIME in plan
            for plan in self._all_plans(statement)
        )

    def _all_plans(self, statement: Executed) -> list[str]:
        plans: list[str] = []
        for joins in (_NESTED, "SELECT"):
            for plan in ("generic", "custom") if _is_short(statement) else ("generic",):
                self._connection.execute(
                    f"RESET ALL; {joins}; SET plan_cache_mode = force_{plan}_plan; "
                    "SET client_min_messages = log; SET debug_pretty_print = off"
                )
                with self._connection.transaction(force_rollback=True):
                    for text in statement.setup:
                        self._connection.execute(text)  # type: ignore[call-overload]
                    plans += self._printed(statement)
        return plans

    def _printed(self, statement: Executed) -> list[str]:
        """Return the plan tree as PostgreSQL prints it (debug_print_plan)."""
        self._plans.clear()
        if statement.prepared:
            first, *others = statement.text.split("%s")
            numbered = first + "".join(f"${n}{part}" for n, part in enumerate(others, 1))
            numbered = numbered.replace("%%", "%")
            self._connection.execute("DEALLOCATE ALL")
            self._connection.execute(f"PREPARE planned AS {numbered}")
            values = statement.parameters if _is_short(statement) else [None] * len(others)
            given = literals.SQL(", ").join(map(literals.Literal, values))
            call = literals.SQL("({})").format(given) if values else literals.SQL("")
            self._connection.execute("SET debug_print_plan = on")
            self._connection.execute(literals.SQL("EXPLAIN EXECUTE planned{}").format(call))
        else:
            cursor = psycopg.ClientCursor(self._connection)
            cursor.execute("SET debug_print_plan = on")
            cursor.execute(f"EXPLAIN {statement.text}", statement.parameters or None)
        # The text is broken into lines, within words too.
        plans = ["".join(plan.split()) for plan in self._plans]
        assert any("{PLANNEDSTMT" in plan for plan in plans), statement.text
        return plans


def refused(statements: Sequence[Executed], url: str) -> list[Executed]:
    """Return those of some statements that PostgreSQL 18 must not be given."""
    with Planner(url) as planner:
        return [each for each in statements if planner.prunes_under_lock(each)]
