"""The consent ledger for API callers: recording decisions and reading pages of entries."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import UUID

from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from messaging.consent import ledger
from messaging.consent.entry_inputs import ConsentInput
from messaging.domain.channels import ALL
from messaging.domain.policy import unknown_category
from messaging.models import ConsentEntry, ConsentEntryInTest
from messaging.policy import organization_policy
from rme.core import errors
from rme.core.db import clock, keyset
from rme.crm.contacts import get_contacts
from rme.tenants.oauth.authentication import Caller

CLOCK_TOLERANCE = timedelta(seconds=60)
"""How far a caller's clock may be ahead of the server's."""

_Write = Callable[[str, Sequence[ledger.ConsentDecision]], list[ConsentEntry]]
CheckedInput = ConsentInput | errors.ApiError
"""One input that fits the schema, or the error that says why it does not."""


def record(caller: Caller, inputs: Sequence[CheckedInput]) -> list[ConsentEntry | errors.ApiError]:
    """Record decisions; return for each input its entry, or why it was refused, in order.

    A bad input fails no other. The number of statements does not depend on the number of inputs.
    """
    by = f"application {caller.application_id}"
    return record_for(caller.organization.id, inputs, by, test=caller.test)


def record_for(
    organization_id: str, inputs: Sequence[CheckedInput], recorded_by: str, *, test: bool = False
) -> list[ConsentEntry | errors.ApiError]:
    """Record an application's or a person's decisions; `test`: in the TEST layer."""
    valid = [entry for entry in inputs if isinstance(entry, ConsentInput)]
    contacts = get_contacts(organization_id, list({entry.contact_id for entry in valid}))
    categories = {ALL, *organization_policy.of(organization_id).categories} if valid else set()
    now = clock.now()
    results: list[ledger.ConsentDecision | errors.ApiError] = []
    for entry in inputs:
        try:
            if isinstance(entry, errors.ApiError):
                raise entry
            if entry.contact_id not in contacts:
                raise errors.NotFound.at("contactId", _("no such contact"))
            if entry.category not in categories:
                raise errors.InvalidPayload.at(
                    "category", unknown_category(entry.category, categories)
                )
            results.append(_decision(entry, now, recorded_by))
        except errors.ApiError as error:
            results.append(error)
    decisions = [result for result in results if isinstance(result, ledger.ConsentDecision)]
    write = cast(_Write, ledger.record_in_test) if test else ledger.record
    entries = iter(write(organization_id, decisions))
    return [result if isinstance(result, errors.ApiError) else next(entries) for result in results]


def _decision(stated: ConsentInput, now: datetime, recorded_by: str) -> ledger.ConsentDecision:
    return ledger.ConsentDecision(
        contact_id=stated.contact_id,
        channel=stated.channel,
        category=stated.category,
        status=stated.status,
        source=stated.source,
        occurred_at=occurred_at(stated.occurred_at, now),
        evidence=stated.evidence,
        recorded_by=recorded_by,
    )


def occurred_at(stated: datetime | None, now: datetime) -> datetime | None:
    """Return the stated time in UTC. Raises InvalidPayload if it lies in the future."""
    if stated is None:
        return None
    if stated > now + CLOCK_TOLERANCE:
        raise errors.InvalidPayload.at("occurredAt", _("lies in the future"))
    try:
        return stated.astimezone(UTC)
    except OverflowError:  # in UTC it is before the year 1
        raise errors.InvalidPayload.at("occurredAt", _("is out of range")) from None


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """Which entries a page has. None: any."""

    contact_id: str | None = None
    channel: str | None = None
    category: str | None = None
    history: bool = False
    """Whether entries that a newer one replaces are included."""
    contact_ids: Collection[str] | None = None
    status: str | None = None
    source: str | None = None
    scanned: int = 0
    """The most entries that are looked at, where no index has the filter; 0: all."""
    limit: int = 50
    cursor: UUID | None = None
    """The id of the last entry of the page before."""
    test: bool = False
    """Whether to return the entries of the TEST layer instead of the live ones."""


# The order is that of `messaging.store.gates.current_consent`: of entries of one instant OPTED_OUT
# counts, and it sorts last.
_LAYERS: Mapping[bool, type[ConsentEntry]] = {
    False: ConsentEntry,
    True: cast(type[ConsentEntry], ConsentEntryInTest),  # these columns are the same
}
_NEWER = (
    Q(occurred_at__gt=OuterRef("occurred_at"))
    | Q(occurred_at=OuterRef("occurred_at"), status__gt=OuterRef("status"))
    | Q(occurred_at=OuterRef("occurred_at"), status=OuterRef("status"), pk__gt=OuterRef("pk"))
) & Q(
    organization_id=OuterRef("organization_id"),
    contact_id=OuterRef("contact_id"),
    channel=OuterRef("channel"),
    category=OuterRef("category"),
)


def page(organization_id: str, query: LedgerFilter) -> keyset.Page[ConsentEntry]:
    """Return a page of entries, newest first.

    Entries of erased people are not included. One query; with `scanned` another one.
    """
    layer = _LAYERS[query.test]._default_manager
    condition = Q(~Q(contact_id=""), **_exact(query))
    if query.contact_ids is not None:
        condition &= Q(contact_id__in=query.contact_ids)
    if not query.history:
        condition &= Q(~Exists(layer.filter(_NEWER)))
    has_index = query.contact_id or query.contact_ids is not None
    return keyset.page(
        layer.filter(organization_id=organization_id),
        condition,
        limit=query.limit,
        before=query.cursor,
        scanned=None if has_index else query.scanned,
    )


def _exact(query: LedgerFilter) -> dict[str, str]:
    """Return the filters that a column must equal, by the name of the column."""
    names = ("contact_id", "channel", "category", "status", "source")
    return {name: value for name in names if (value := getattr(query, name))}
