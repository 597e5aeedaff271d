"""Changes that recipients make on their pages. Every change is an entry of the consent ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.db import transaction

from messaging.consent import ledger, suppressions
from messaging.domain.channels import ALL, Channel
from messaging.domain.gates import AddressLevel
from messaging.domain.progress.receipts import Receipt
from messaging.domain.statuses import EventType
from messaging.feedback import receipts
from messaging.links import Confirmation, PreferenceLink
from messaging.models import ConsentEntry, SendingRules
from messaging.pages import confirmation_mail
from messaging.pages.preferences import (
    CategoryChannel,
    LinkRecipient,
    choices,
    liftable_suppressions,
    objecting_addresses,
    suppressed_channels,
)
from messaging.pages.wording import Wording
from messaging.store.gates import current_consent
from rme.core import ids

RECORDED_BY = "recipient"
Evidence = Mapping[str, str]


class ChangeResult(StrEnum):
    """The result of a change, which the page shows."""

    SAVED = "saved"
    UNCHANGED = "unchanged"
    STOPPED = "stopped"
    MAILED = "mailed"
    UNMAILED = "unmailed"


@dataclass(frozen=True, slots=True)
class SubmittedChoices:
    """A submitted form: what the page showed as on or off, and what is on now."""

    shown: Mapping[CategoryChannel, bool]
    on: frozenset[CategoryChannel]

    def turned_on(self, key: CategoryChannel) -> bool:
        return key in self.on and self.shown.get(key) is False

    def turned_off(self, key: CategoryChannel) -> bool:
        return key not in self.on and self.shown.get(key) is True


def change(
    recipient: LinkRecipient,
    submitted: SubmittedChoices,
    evidence: Evidence,
    *,
    wording: Wording,
    request_id: str,
) -> ChangeResult:
    """Record what the recipient changed, compared with what the page showed.

    Opting in lifts the recipient's own suppressions. A choice that this would turn on although the
    page showed it as off is recorded as an opt-out. With double opt-in, email that needs consent is
    on only after it was confirmed.
    """
    current = choices(recipient)
    turned_on = [each for each in current if submitted.turned_on(each.key) and not each.on]
    opted_out = {each.key for each in current if submitted.turned_off(each.key) and each.consented}
    pending = [
        each
        for each in turned_on
        if each.opt_in and each.channel is Channel.EMAIL and _has_double_opt_in(recipient)
    ]
    opted_in = {each.key for each in turned_on if each not in pending}
    with transaction.atomic():
        opened = _lift(recipient, {each.channel for each in turned_on})
        shown_off = {
            each.key
            for each in current
            if each.consented and not each.on and each.channel in opened
        }
        opted_out |= shown_off - opted_in
        decisions = [
            *((key, ConsentEntry.Status.OPTED_OUT) for key in sorted(opted_out)),
            *((key, ConsentEntry.Status.OPTED_IN) for key in sorted(opted_in)),
        ]
        _record(recipient, decisions, ConsentEntry.Source.PREFERENCE_PAGE, evidence)
    if (recipient.link.category, recipient.link.channel) in opted_out:
        _add_unsubscribed_event(recipient.link)
    if pending:
        categories = tuple(each.category for each in pending)
        sent = confirmation_mail.send(
            recipient.organization,
            Confirmation(recipient.link, categories),
            wording=wording,
            request_id=request_id,
        )
        return ChangeResult.MAILED if sent else ChangeResult.UNMAILED
    return ChangeResult.SAVED if decisions else ChangeResult.UNCHANGED


def _has_double_opt_in(recipient: LinkRecipient) -> bool:
    return SendingRules.objects.filter(
        organization_id=recipient.organization.id, double_opt_in=True
    ).exists()


def _lift(recipient: LinkRecipient, channels: set[Channel]) -> set[Channel]:
    """Lift the recipient's own suppressions on channels; return all channels that this opened."""
    if not channels or not (suppressed := suppressed_channels(recipient)):
        return set()
    suppressions.remove(liftable_suppressions(recipient, channels))
    return suppressed - suppressed_channels(recipient)


def _record(
    recipient: LinkRecipient,
    decisions: Sequence[tuple[CategoryChannel, str]],
    source: str,
    evidence: Evidence,
) -> None:
    out = any(status == ConsentEntry.Status.OPTED_OUT for _, status in decisions)
    addresses = objecting_addresses(recipient) if out else {}
    ledger.record(
        recipient.organization.id,
        [
            ledger.ConsentDecision(
                contact_id=recipient.contact.id,
                channel=channel,
                category=category,
                status=status,
                source=source,
                occurred_at=None,
                evidence=evidence,
                recorded_by=RECORDED_BY,
                addresses=addresses,
            )
            for (category, channel), status in decisions
        ],
    )


def stop(recipient: LinkRecipient, evidence: Evidence) -> ChangeResult:
    """Record an opt-out of everything, on all channels."""
    everything = ((ALL, ALL), ConsentEntry.Status.OPTED_OUT)
    _record(recipient, [everything], ConsentEntry.Source.PREFERENCE_PAGE, evidence)
    _add_unsubscribed_event(recipient.link)
    return ChangeResult.STOPPED


def unsubscribe(recipient: LinkRecipient, source: str, evidence: Evidence) -> None:
    """Record, once, an opt-out of the message's category on its channel."""
    link = recipient.link
    address = objecting_addresses(recipient).get(link.channel, "")
    consent = current_consent.read(
        link.organization_id, [link.contact_id], [link.channel], [link.category], [address]
    )
    if consent.opted_out(link.contact_id, link.channel, link.category, address=address):
        level = AddressLevel(address, link.channel, link.category)
        if objection := consent.objections.get(level):
            ledger.repeat_objections(link.organization_id, {level: objection.entry})
        return
    key = (link.category, link.channel)
    _record(recipient, [(key, ConsentEntry.Status.OPTED_OUT)], source, evidence)
    _add_unsubscribed_event(link)


def _add_unsubscribed_event(link: PreferenceLink) -> None:
    """Add the event `unsubscribed` to the message whose link was used."""
    delivery_id = ids.parse(link.delivery_id)
    if delivery_id:
        receipts.apply([Receipt(delivery_id, EventType.UNSUBSCRIBED)])


def confirm(recipient: LinkRecipient, categories: Sequence[str], evidence: Evidence) -> None:
    """Record what the recipient confirmed by a mail's link; once, however often it is used."""
    confirmed = [
        (each.key, ConsentEntry.Status.OPTED_IN)
        for each in choices(recipient)
        if each.channel is Channel.EMAIL and each.category in categories and not each.consented
    ]
    _record(recipient, confirmed, ConsentEntry.Source.DOUBLE_OPT_IN, evidence)
