"""Check the variables of drafts' recipients."""

from collections.abc import Sequence

from messaging.content import variable_checks
from messaging.content.variable_checks import VariableCheck
from messaging.domain.planning import Draft, Problems
from rme.core import errors


class SlowCheck(errors.Unavailable):
    """A call's variables take long to check: it must be answered by itself, not in a set."""


def read_problems(
    drafts: Sequence[Draft], *, in_set: bool
) -> dict[int, Sequence[Problems] | errors.ApiError]:
    """Check the variables of recipients against the schemas of their templates.

    Return the problems of each recipient, for the drafts that have any, by index; or the error of
    a draft whose variables can't be checked now.
    """
    places: list[tuple[int, int]] = []
    checks: list[VariableCheck] = []
    for index, draft in enumerate(drafts):
        if draft.refusal is not None:
            continue
        request = draft.outline.request
        for recipient in draft.recipients:
            for version in recipient.templates:
                if version.variables:
                    places.append((index, recipient.position))
                    variables = request.variables_of(recipient.requested)
                    checks.append(
                        VariableCheck(request.organization.id, version.variables, variables)
                    )
    run = variable_checks.check_quickly if in_set else variable_checks.check
    problems: dict[int, Sequence[Problems] | errors.ApiError] = {}
    by_place: dict[int, list[list[tuple[str, str]]]] = {}
    for (index, position), problems_of_version in zip(places, run(checks), strict=True):
        if problems_of_version is None:
            organization_id = drafts[index].outline.request.organization.id
            problems[index] = variable_checks.budget_error(organization_id) or SlowCheck()
        elif problems_of_version:
            by_recipient = by_place.setdefault(index, [[] for _ in drafts[index].recipients])
            by_recipient[position] += problems_of_version
    return by_place | problems
