"""Check recipients' variables against the schemas of their templates, in bounded time.

Nearly all checks take less than a millisecond and run at once. But a schema is a tenant's program,
so longer checks run as errands, in a process that can be killed and on the organization's budget.
No check holds up the thread that answers other organizations' calls.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from messaging.content import rendering
from rme.core import errors
from rme.core.process.errands import ERRANDS, Overrun

Problems = list[tuple[str, str]]
"""Path and message of each variable that is missing or wrong."""

QUICK_SECONDS = 0.002
"""CPU time of a check that runs at once."""
QUICK_SECONDS_IN_ALL = 0.02
"""The same for all checks of an organization in one call, or in one set of calls."""
SECONDS_IN_ALL = 1.0
"""CPU time of all errands of a call."""


class VariableCheck(NamedTuple):
    """A recipient's variables, and the schema that they must fit."""

    organization_id: str
    schema: Mapping[str, object]
    variables: Mapping[str, object]


def check_quickly(checks: Iterable[VariableCheck]) -> list[Problems | None]:
    """Return the problems of each check; None for a slow one."""
    remaining: defaultdict[str, float] = defaultdict(lambda: QUICK_SECONDS_IN_ALL)
    results: list[Problems | None] = []
    for organization_id, schema, variables in checks:
        started = time.thread_time()
        seconds = min(QUICK_SECONDS, remaining[organization_id])
        results.append(rendering.quick_problems(schema, variables, seconds))
        remaining[organization_id] -= time.thread_time() - started
    return results


def budget_error(organization_id: str) -> errors.RateLimited | None:
    """Return the error of a slow check, if the organization's budget is used up."""
    try:
        ERRANDS.budget.require(organization_id)
    except errors.RateLimited as error:
        return error
    return None


def check(checks: Sequence[VariableCheck]) -> list[Problems]:
    """Return the problems of each check, however long it takes, up to `SECONDS_IN_ALL`.

    Raises RateLimited if the checks of an organization have used up its budget.
    """
    results = check_quickly(checks)
    slow: defaultdict[str, list[int]] = defaultdict(list)
    for index, problems in enumerate(results):
        if problems is None:
            slow[checks[index].organization_id].append(index)
    for organization_id, indexes in slow.items():
        problems_of_slow = _carry_out(organization_id, [checks[index] for index in indexes])
        for index, problems in zip(indexes, problems_of_slow, strict=True):
            results[index] = problems
    return [problems or [] for problems in results]


def _carry_out(organization_id: str, checks: Sequence[VariableCheck]) -> list[Problems]:
    pairs = [(each.schema, each.variables) for each in checks]
    try:
        return ERRANDS.run(
            organization_id, 2 * SECONDS_IN_ALL, rendering.check_each, pairs, SECONDS_IN_ALL
        )
    except Overrun:
        return [[("", rendering.TOO_LONG)] for _ in checks]
