"""A draft: the channels on which each recipient can be reached, its texts and its time."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from messaging.domain.accounts.routing import Devices
from messaging.domain.channels import Channel
from messaging.domain.planning.decisions import ChannelDecision
from messaging.domain.planning.outlines import Outline, RequestedRecipient, RequestedTemplate
from messaging.domain.planning.refusals import RefusalCode, SendRefusal, invalid, not_found
from messaging.domain.planning.texts import (
    NO_TEXTS,
    ActiveVersion,
    Texts,
    Versions,
    literal_texts,
    template_texts,
)
from messaging.domain.sentences import sentence
from messaging.domain.statuses import Status
from messaging.domain.timing import BadTime, due

NO_DEVICES: Devices = frozenset()


class PlannedContact(NamedTuple):
    """A contact, as far as plans depend on it."""

    id: str
    language: str
    zone: str
    """The name of an IANA zone: its own, or its organization's."""
    email: str | None = None
    """Normalised, like `phone`; None without one, and where no email is possible."""
    phone: str | None = None
    devices: Devices = NO_DEVICES
    """Those that a push of the request reaches."""


class RequestFacts(NamedTuple):
    """The facts about a request's recipients and content."""

    contacts: Mapping[str, PlannedContact]
    record: Mapping[str, Any] | None
    """The record that the request names."""
    versions: Versions
    """The active versions of its template, at least."""


class Option(NamedTuple):
    """One channel on which a recipient can be reached, with its address and its template."""

    channel: Channel
    address: str | None
    devices: Devices = NO_DEVICES
    version: ActiveVersion | None = None


class DraftRecipient(NamedTuple):
    """A recipient with the channels to choose from."""

    position: int
    requested: RequestedRecipient
    contact: PlannedContact | None = None
    options: Sequence[Option] = ()
    templates: Sequence[ActiveVersion] = ()
    """The versions whose variables it needs, for those of the request's channels that have one."""
    scheduled_for: datetime | None = None
    refusal: SendRefusal | None = None
    status: Status = Status.ACCEPTED
    decisions: Sequence[ChannelDecision] = ()


class Draft(NamedTuple):
    """A request whose recipients have no channel yet."""

    outline: Outline
    record: Mapping[str, Any] | None
    recipients: Sequence[DraftRecipient]
    refusal: SendRefusal | None
    """The reason to refuse the request as a whole."""


def draft_each(
    outlines: Iterable[tuple[Outline, RequestFacts | None]], now: datetime
) -> list[Draft]:
    """Draft the requests of a set, in order. One that its policy refuses has no facts."""
    texts = _SetTexts()
    return [_draft(outline, facts, texts, now) for outline, facts in outlines]


class _SetTexts:
    """The texts of the requests of a set: equal ones are looked up once."""

    def __init__(self) -> None:
        self._by_template: dict[tuple[object, ...], Texts] = {}

    def of(
        self, outline: Outline, template: RequestedTemplate, versions: Versions, language: str
    ) -> Texts:
        """Return a template's versions for a recipient of this language."""
        request = outline.request
        key = (request.organization.id, *template, request.category, language, *outline.channels)
        texts = self._by_template.get(key)
        if texts is None:
            texts = template_texts(outline, template, versions, language)
            self._by_template[key] = texts
        return texts


def _draft(
    outline: Outline, facts: RequestFacts | None, set_texts: _SetTexts, now: datetime
) -> Draft:
    recipients = outline.request.recipients
    if facts is None:
        undrafted = [DraftRecipient(position, each) for position, each in enumerate(recipients)]
        return Draft(outline, None, undrafted, outline.refusal)
    template = outline.request.template
    texts = NO_TEXTS if template else literal_texts(outline)
    text_refusal = texts.refusal
    time_refusal: SendRefusal | None = None
    drafted: list[DraftRecipient] = []
    for position, requested in enumerate(recipients):
        contact = facts.contacts.get(requested.contact_id)
        if contact is None:
            drafted.append(_unknown(position, requested))
            continue
        if template:
            texts = set_texts.of(outline, template, facts.versions, contact.language)
        text_refusal = text_refusal or texts.refusal
        time = _time(outline, contact, now)
        if isinstance(time, BadTime) and not time.is_local:
            time_refusal, time = time_refusal or invalid(time.field, time.problem), None
        drafted.append(_drafted(outline, position, contact, texts, time))
    return Draft(
        outline,
        facts.record,
        drafted,
        time_refusal or _record_refusal(outline, facts) or text_refusal,
    )


def _unknown(position: int, requested: RequestedRecipient) -> DraftRecipient:
    refusal = not_found(f"to[{position}].contactId", sentence("no such contact"))
    return DraftRecipient(position, requested, refusal=refusal, status=Status.BLOCKED)


def _time(outline: Outline, contact: PlannedContact, now: datetime) -> datetime | BadTime | None:
    schedule, organization = outline.request.schedule, outline.request.organization
    if schedule is None:
        return None
    return due(schedule, contact_zone=contact.zone, organization_zone=organization.zone, now=now)


def _record_refusal(outline: Outline, facts: RequestFacts) -> SendRefusal | None:
    if outline.request.record_id and facts.record is None:
        return not_found("context.recordId", sentence("no such record"))
    return None


def _drafted(
    outline: Outline,
    position: int,
    contact: PlannedContact,
    texts: Texts,
    time: datetime | BadTime | None,
) -> DraftRecipient:
    """Return a recipient with the channels for which it has an address or a device, and a text."""
    options: list[Option] = []
    unreachable: list[ChannelDecision] = []
    untexted: list[ChannelDecision] = []
    for channel, is_usable, version in zip(
        outline.channels, texts.usable, texts.versions, strict=True
    ):
        address, devices = _reach(contact, channel)
        if not address and not devices:
            unreachable.append(ChannelDecision(channel, RefusalCode.UNREACHABLE))
        elif is_usable:
            options.append(Option(channel, address, devices, version))
        else:
            untexted.append(ChannelDecision(channel, texts.missing_code))
    bad_time = time if isinstance(time, BadTime) else None
    return DraftRecipient(
        position,
        outline.request.recipients[position],
        contact,
        options,
        texts.templates,
        time if isinstance(time, datetime) else None,
        invalid(bad_time.field, bad_time.problem) if bad_time else None,
        Status.EXPIRED if bad_time else Status.ACCEPTED,
        [*unreachable, *untexted],
    )


def _reach(contact: PlannedContact, channel: Channel) -> tuple[str | None, Devices]:
    """Return a contact's address, or its devices for a push."""
    if channel is Channel.EMAIL:
        return contact.email, NO_DEVICES
    if channel is Channel.SMS:
        return contact.phone, NO_DEVICES
    return None, contact.devices
