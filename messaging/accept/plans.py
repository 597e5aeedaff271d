"""The second step of accepting: from facts to plans."""

from collections.abc import Sequence
from datetime import datetime

from messaging.domain.planning import Plan, PlanFacts, plan
from rme.core import addresses, errors


def plans_of(
    requests: Sequence[PlanFacts | errors.ApiError], now: datetime
) -> list[Plan | errors.ApiError]:
    """Decide the plan of each request; return the error of one without facts."""
    readable = [each for each in requests if isinstance(each, PlanFacts)]
    plans = iter(plan(readable, now, addresses.phone_spellings))
    return [next(plans) if isinstance(each, PlanFacts) else each for each in requests]
