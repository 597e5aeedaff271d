"""The plans of the statements that code runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection


@contextmanager
def explained() -> Iterator[list[str]]:
    """Collect the lines of the plans of all queries that run in the block."""
    lines: list[str] = []

    def explain(execute: Any, statement: str, params: Any, many: bool, context: Any) -> Any:
        if statement.startswith(("SELECT", "(SELECT")):
            execute(f"EXPLAIN {statement}", params, many, context)
            lines.extend(line for (line,) in context["cursor"].fetchall())
        return execute(statement, params, many, context)

    with connection.execute_wrapper(explain):
        yield lines
