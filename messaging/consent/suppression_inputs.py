"""Input of the suppression resource. An import reads its rows by the same rules."""

from datetime import timedelta
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import ConfigDict, Field, RootModel, StringConstraints, TypeAdapter

from messaging.consent.suppressions import (
    NewSuppression,
    SuppressionFilter,
    address_problem,
    normalize_address,
)
from rme.core import ids
from rme.core.addresses import Digits
from rme.core.db import clock
from rme.core.errors import InvalidPayload, NotFound
from rme.core.http.fields import (
    Cursor,
    Instant,
    Limit,
    Printable,
    Query,
    RecordId,
    RestoredPlus,
    Schema,
    Upper,
    any_case,
    exactly_one,
    given,
)
from rme.core.http.parsing import parse
from rme.tenants.organizations import OrganizationRecord

AnyChannelName = Annotated[Literal["EMAIL", "SMS", "PUSH", "ALL"], Upper]
ReasonName = Annotated[
    Literal["HARD_BOUNCE", "COMPLAINT", "STOP", "UNSUBSCRIBE", "INVALID_ADDRESS", "MANUAL"], Upper
]
AddressText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=320),
    Field(description="An email address or a phone number, in any usual form."),
]
QueryAddress = Annotated[AddressText, RestoredPlus]
MAX_LIFETIME = timedelta(days=36_525)
"""How far ahead an entry may expire: a hundred years."""


class SuppressionInput(Schema):
    """An entry. Exactly one of `address` and `contactId` is given; PUSH needs a contact."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [
                exactly_one("address", "contactId"),
                {
                    "anyOf": [
                        given("contactId"),
                        {"properties": {"channel": any_case(["EMAIL", "SMS", "ALL"])}},
                    ]
                },
            ]
        }
    )

    channel: AnyChannelName
    address: AddressText | None = None
    contact_id: RecordId | None = None
    reason: ReasonName = "MANUAL"
    note: Annotated[str, StringConstraints(max_length=500), Printable] | None = None
    expires_at: Instant | None = None


class SuppressionEntries(Schema):
    """Many entries, for the OpenAPI description. A bad one fails no other."""

    entries: Annotated[list[SuppressionInput], Field(min_length=1, max_length=500)]


class SuppressionBody(RootModel[SuppressionInput | SuppressionEntries]):
    """One entry or many, for the OpenAPI description: each is parsed by its own schema."""


class SuppressionsQuery(Query):
    """The query of GET /suppressions."""

    channel: AnyChannelName | None = None
    address: QueryAddress | None = None
    contact_id: RecordId | None = None
    reason: ReasonName | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class LiftQuery(Query):
    """Which entry to delete: `id`, or `channel` with one of `address` and `contactId`."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=64)] | None = None
    channel: AnyChannelName | None = None
    address: QueryAddress | None = None
    contact_id: RecordId | None = None


SUPPRESSION = TypeAdapter(SuppressionInput)


def read_entry(
    body: object, organization: OrganizationRecord, source: str, digits: Digits = Digits.UNSAID
) -> NewSuppression:
    """Parse an entry. Raises InvalidPayload, which names every field that is wrong."""
    entry = parse(SUPPRESSION, body)
    if (entry.address is None) == (entry.contact_id is None):
        raise InvalidPayload.at("address", _("give exactly one of address and contactId"))
    if entry.expires_at and not timedelta(0) < entry.expires_at - clock.now() < MAX_LIFETIME:
        raise InvalidPayload.at("expiresAt", _("must be ahead, by less than 100 years"))
    return NewSuppression(
        organization_id=organization.id,
        channel=entry.channel,
        address=read_address(entry.address, entry.channel, organization, digits),
        contact_id=entry.contact_id or "",
        reason=entry.reason,
        note=entry.note or "",
        source=source,
        expires_at=entry.expires_at,
    )


def read_address(
    address: str | None,
    channel: str,
    organization: OrganizationRecord,
    digits: Digits = Digits.UNSAID,
) -> str:
    """Return an address's normal form, empty for None. Raises InvalidPayload."""
    if address is None:
        return ""
    normal = normalize_address(channel, address, organization.region, digits)
    if normal is None:
        problem = address_problem(channel, address, organization.region, digits)
        raise InvalidPayload.at("address", problem)
    return normal


def read_lift(query: dict[str, Any], organization: OrganizationRecord) -> SuppressionFilter:
    """Parse which entry to lift. Raises NotFound, and InvalidPayload unless one entry is named:
    no call can ever lift all.
    """
    lift = LiftQuery.read(query)
    names = set(lift.model_dump(exclude_none=True))
    if names == {"id"} and lift.id is not None:
        return read_id(lift.id)
    if names not in ({"channel", "address"}, {"channel", "contact_id"}) or lift.channel is None:
        raise InvalidPayload.at("id", _("give id, or channel with one of address and contactId"))
    return SuppressionFilter(
        channel=lift.channel,
        address=read_address(lift.address, lift.channel, organization),
        contact_id=lift.contact_id,
    )


def read_id(text: str) -> SuppressionFilter:
    """Parse an entry's id. Raises NotFound."""
    key = ids.parse(text)
    if key is None:
        raise NotFound(_("This suppression doesn't exist."))
    return SuppressionFilter(id=key)
