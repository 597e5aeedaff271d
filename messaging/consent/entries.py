"""The consent ledger as programs see it: recording what they state, and reading it by keyset."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection

from messaging.consent import ledger
from messaging.consent.entry_inputs import ConsentInput
from messaging.models import ConsentEntry
from messaging.policy import organization_policy
from rme.core import errors
from rme.core.channels import ALL
from rme.core.db import clock
from rme.core.db.clock import iso
from rme.crm.contacts import get_contacts
from rme.tenants.authentication import Caller

AHEAD = timedelta(seconds=60)
"""How far a caller's clock may be ahead of ours."""

CheckedInput = ConsentInput | errors.ApiError
"""What one caller states: checked, or with what is wrong with it."""


def record(caller: Caller, given: Sequence[CheckedInput]) -> list[dict[str, Any] | errors.ApiError]:
    """Record decisions, and give for each its entry, or why it was refused, in order.

    A bad one fails no other, and the number of statements does not depend on how many there are.
    """
    organization_id = caller.organization.id
    stated = [each for each in given if isinstance(each, ConsentInput)]
    contacts = get_contacts(organization_id, list({each.contact_id for each in stated}))
    categories = {ALL, *organization_policy.of(organization_id).categories} if stated else set()
    now = clock.now()
    results: list[ledger.ConsentDecision | errors.ApiError] = []
    for each in given:
        try:
            if isinstance(each, errors.ApiError):
                raise each
            if each.contact_id not in contacts:
                raise errors.NotFound.at("contactId", "no such contact")
            if each.category not in categories:
                raise errors.InvalidPayload.at("category", "no such category")
            results.append(_decision(each, now, f"application {caller.application_id}"))
        except errors.ApiError as error:
            results.append(error)
    decisions = [result for result in results if isinstance(result, ledger.ConsentDecision)]
    rows = iter(ledger.append(organization_id, decisions))
    return [
        result if isinstance(result, errors.ApiError) else _shown(*_values(next(rows)))
        for result in results
    ]


def _decision(given: ConsentInput, now: datetime, recorded_by: str) -> ledger.ConsentDecision:
    return ledger.ConsentDecision(
        contact_id=given.contact_id,
        channel=given.channel,
        category=given.category,
        status=given.status,
        source=given.source,
        occurred_at=_occurred(given.occurred_at, now),
        evidence=given.evidence,
        recorded_by=recorded_by,
    )


def _occurred(given: datetime | None, now: datetime) -> datetime | None:
    if given is None:
        return None
    if given > now + AHEAD:
        raise errors.InvalidPayload.at("occurredAt", "lies in the future")
    try:
        return given.astimezone(UTC)
    except OverflowError:  # in UTC it is before the year 1
        raise errors.InvalidPayload.at("occurredAt", "is out of range") from None


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """What the ledger is asked for. `cursor` is the id of the last entry of the page before."""

    contact_id: str | None = None
    channel: str | None = None
    category: str | None = None
    history: bool = False
    limit: int = 50
    cursor: UUID | None = None


_T = ConsentEntry._meta.db_table
_COLUMNS = (
    "id",
    "contact_id",
    "channel",
    "category",
    "status",
    "source",
    "occurred_at",
    "recorded_at",
)
_NEWER = f"""SELECT FROM {_T} n WHERE n.organization_id = e.organization_id
  AND n.contact_id = e.contact_id AND n.channel = e.channel AND n.category = e.category
  AND (n.occurred_at, n.status, n.id) > (e.occurred_at, e.status, e.id)"""
# The order of `consent.present`: of entries of one instant OPTED_OUT counts, it sorts last.


def page(organization_id: str, wanted: LedgerFilter) -> tuple[list[dict[str, Any]], UUID | None]:
    """Give a page of entries, newest first, and the last id if there are more; one query.

    Entries of erased people belong to nobody and are not shown.
    """
    conditions = ["e.organization_id = %s", "e.contact_id <> ''"]
    parameters: list[Any] = [organization_id]
    for column in ("contact_id", "channel", "category"):
        if value := getattr(wanted, column):
            conditions.append(f"e.{column} = %s")
            parameters.append(value)
    if wanted.cursor:
        conditions.append("e.id < %s")
        parameters.append(wanted.cursor)
    if not wanted.history:
        conditions.append(f"NOT EXISTS ({_NEWER})")
    columns = ", ".join(f"e.{column}" for column in _COLUMNS)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns} FROM {_T} e WHERE {' AND '.join(conditions)} "
            "ORDER BY e.id DESC LIMIT %s",
            [*parameters, wanted.limit + 1],
        )
        rows = cursor.fetchall()
    more, rows = len(rows) > wanted.limit, rows[: wanted.limit]
    return [_shown(*row) for row in rows], rows[-1][0] if more else None


def _values(row: Any) -> list[Any]:
    return [row[column] for column in _COLUMNS]


def _shown(*values: Any) -> dict[str, Any]:
    row = dict(zip(_COLUMNS, values, strict=True))
    return {
        "id": str(row["id"]),
        "contactId": row["contact_id"],
        "channel": row["channel"],
        "category": row["category"],
        "status": row["status"],
        "source": row["source"],
        "occurredAt": iso(row["occurred_at"]),
        "recordedAt": iso(row["recorded_at"]),
    }
