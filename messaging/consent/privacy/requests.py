"""Records of requests for a data export or an erasure, with their deadline."""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _

from messaging.consent import suppressions
from messaging.domain.channels import ALL
from messaging.models import PrivacyFile, PrivacyRequest
from rme.core import errors
from rme.core.db import clock, keyset
from rme.crm import people
from rme.crm.connectors.records import ContactRecord
from rme.tenants import audit, organizations
from rme.tenants.audit import Action, Actor

Kind, State = PrivacyRequest.Kind, PrivacyRequest.State
PENDING = Q(state__in=[State.OPEN, State.RUNNING])
FOUND = 20
"""The most people among whom the right one is chosen."""


@dataclass(frozen=True, slots=True)
class NewRequest:
    """What is recorded about a request. It names a contact or an address."""

    kind: str
    contact_id: str = ""
    address: str = ""
    note: str = ""
    requested_at: datetime | None = None
    """None: now."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Who is meant by what was typed: people, or an address that no contact has."""

    people: list[ContactRecord]
    address: str = ""


def subject_of(organization_id: str, text: str) -> Subject:
    """Return who is meant by an email address, a phone number, a name or an id.

    Raise Unavailable if the platform does not answer.
    """
    matches = people.find(organization_id, text, limit=FOUND)
    region = organizations.get(organization_id).region
    address = "" if matches else suppressions.normalize_address(ALL, text.strip(), region)
    return Subject(matches, address or "")


def digests_of(organization_id: str, address: str) -> list[str]:
    """Return the digests by which requests of an address are found when the address is gone: that
    of the present key first, then those of earlier keys.
    """
    salt = f"privacy request {organization_id}"
    return [
        salted_hmac(salt, address, secret=secret, algorithm="sha256").hexdigest()
        for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    ]


def open_request(organization_id: str, new: NewRequest, actor: Actor) -> PrivacyRequest:
    """Record a request. Its deadline counts from the day on which the person asked.

    Raise InvalidPayload for a time in the future, or a second request while the first is pending.
    """
    now = clock.now()
    made_at = new.requested_at or now
    if made_at > now:
        raise errors.InvalidPayload.at("requested_at", _("lies in the future"))
    digests = digests_of(organization_id, new.address) if new.address else [""]
    row = PrivacyRequest(
        organization_id=organization_id,
        kind=new.kind,
        contact_id=new.contact_id,
        address=new.address,
        address_digest=digests[0],
        note=new.note,
        requested_at=made_at,
        due_at=made_at + timedelta(days=settings.PRIVACY_REQUEST_DAYS),
        recorded_by=actor.name,
    )
    pending = PrivacyRequest.objects.filter(
        PENDING,
        organization_id=organization_id,
        contact_id=row.contact_id,
        address_digest__in=digests,
        kind=row.kind,
    )
    if pending.exists():
        raise errors.InvalidPayload.at("kind", _("was requested already and is still open"))
    with transaction.atomic():
        row.save(force_insert=True)
        row.refresh_from_db()
        audit.record(actor, [audit.about(row, Action.ADDED, reason=row.note)])
    return row


def order(row: PrivacyRequest, actor: Actor) -> bool:
    """Order a worker to carry a request out; return whether it was open."""
    with transaction.atomic():
        ordered = _open(row).update(state=State.RUNNING, actor=asdict(actor), turn_at=Now())
        if ordered:
            audit.record(actor, [audit.about(row, Action.ORDERED)])
    return bool(ordered)


def refuse(row: PrivacyRequest, reason: str, actor: Actor) -> bool:
    """Refuse a request, with the reason that the person is given; return whether it was open."""
    with transaction.atomic():
        refused = _open(row).update(
            state=State.REFUSED, reason=reason, address="", finished_at=Now()
        )
        if refused:
            audit.record(actor, [audit.about(row, Action.REFUSED, reason=reason)])
    return bool(refused)


def _open(row: PrivacyRequest) -> QuerySet[PrivacyRequest]:
    return PrivacyRequest.objects.filter(
        organization_id=row.organization_id, pk=row.pk, state=State.OPEN
    )


@dataclass(frozen=True, slots=True)
class PrivacyRequestFilter:
    """Which requests a page has. What is empty matches any."""

    kind: str = ""
    state: str = ""
    overdue: bool = False
    contact_ids: Collection[str] | None = None
    address: str = ""
    cursor: UUID | None = None
    """The id of the last request of the page before."""


def page(
    organization_id: str, query: PrivacyRequestFilter, *, limit: int
) -> keyset.Page[PrivacyRequest]:
    """Return a page of requests, newest first; one query."""
    rows = PrivacyRequest.objects.filter(organization_id=organization_id)
    if query.kind:
        rows = rows.filter(kind=query.kind)
    if query.state:
        rows = rows.filter(state=query.state)
    if query.overdue:
        rows = rows.filter(PENDING, due_at__lt=Now())
    if query.address:
        rows = rows.filter(address_digest__in=digests_of(organization_id, query.address))
    elif query.contact_ids is not None:
        rows = rows.filter(contact_id__in=query.contact_ids)
    return keyset.page(rows, limit=limit, before=query.cursor)


def overdue(organization_ids: Collection[str]) -> dict[str, int]:
    """Return the numbers of requests whose deadline has passed, by organization; one query."""
    rows = PrivacyRequest.objects.filter(
        PENDING, organization_id__in=organization_ids, due_at__lt=Now()
    )
    counts = rows.values_list("organization_id").annotate(Count("pk")).order_by()
    return dict(counts.values_list("organization_id", "pk__count"))


def file_of(row: PrivacyRequest) -> PrivacyFile | None:
    """Return the result of a data export without its content, None if it has expired."""
    files = PrivacyFile.objects.defer("content").filter(request_id=row.pk, expires_at__gt=Now())
    return files.first()


def download(row: PrivacyRequest, actor: Actor) -> bytes | None:
    """Return the content of a result, None if it has expired; record that it left."""
    files = PrivacyFile.objects.filter(request_id=row.pk, expires_at__gt=Now())
    content = files.values_list("content", flat=True).first()
    if content is None:
        return None
    audit.record(actor, [audit.about(row, Action.EXPORTED, text="file downloaded")])
    return bytes(content)
