"""What the statements of a call read: their plans, executed and rolled back."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from django.db import connection, transaction

Node = tuple[str, str, str]
"""The kind of a node, the table that it reads and the index, without their partitions' suffixes."""

_PARENTS = """
SELECT child.relname, parent.relname FROM pg_inherits
JOIN pg_class child ON child.oid = inhrelid JOIN pg_class parent ON parent.oid = inhparent
"""


class Reading(NamedTuple):
    """What the statements of a call read, and how."""

    nodes: frozenset[Node]
    """Those that read partitions."""
    partitions: int
    """The partitions that one statement reads: the most of them."""
    blocks: int
    planning_ms: float


def read_by(call: Callable[[], object]) -> Reading:
    """Execute a call, and each of its statements once more to see its plan; keep nothing of it."""
    recorded: list[tuple[str, Any]] = []

    def record(execute: Callable[..., Any], text: str, values: Any, *others: Any) -> Any:
        recorded.append((text, values))
        return execute(text, values, *others)

    with transaction.atomic():
        with connection.execute_wrapper(record):
            call()
        transaction.set_rollback(True)
    parents = dict(_query(_PARENTS))
    plans = list(_plans(recorded))
    found = [list(_executed(plan["Plan"])) for plan in plans]
    return Reading(
        nodes=frozenset(
            _described(node, parents)
            for nodes in found
            for node in nodes
            if node.get("Relation Name", node.get("Index Name")) in parents
        ),
        partitions=max(
            len({node["Relation Name"] for node in nodes} & parents.keys())
            for nodes in ([n for n in nodes if "Relation Name" in n] for nodes in found)
        ),
        blocks=sum(
            plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"] for plan in plans
        ),
        planning_ms=sum(plan["Planning Time"] for plan in plans),
    )


def _plans(recorded: list[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the plan of each statement, executed with the settings that come before it."""
    settings: list[str] = []
    for text, values in recorded:
        if text.startswith("SELECT set_config("):
            settings.append(text)
        elif text.lstrip().startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")):
            with transaction.atomic():
                for setting in settings:
                    _query(setting)
                [(plan,)] = _query(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", values)
                transaction.set_rollback(True)
            settings = []
            yield plan[0]


def _executed(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if node["Actual Loops"]:
        yield node
        for each in node.get("Plans", ()):
            yield from _executed(each)


def _described(node: Mapping[str, Any], parents: Mapping[str, str]) -> Node:
    table, index = node.get("Relation Name", ""), node.get("Index Name", "")
    return node["Node Type"], parents.get(table, table), parents.get(index, index)


def _query(statement: str, values: Any = None) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()
