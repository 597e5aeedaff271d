"""Inbound SMS with a keyword: STOP, START and HELP.

| keyword | consent (SMS, all categories) | suppression of the number | reply |
|---|---|---|---|
| STOP | OPTED_OUT | STOP is added | a confirmation, the last SMS we send |
| START | OPTED_IN | STOP is lifted | a confirmation |
| YES | as START, of a number that is stopped | the same | the same |
| HELP | – | – | who we are and how to stop |

The text must be the keyword, alone, with polite words or as its first sentence (`keywords.find`),
or the provider says that it took it for one, as Twilio does with an account's words. Other texts
are not interpreted; their callback is stored for some days. YES may answer any question, so it is
a keyword only after STOP.

Gateways write the sender's number with `+`, with `00`, as digits with the country code, or as it is
dialled in the country. Where digits may be two numbers, a contact's counts.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from django.db.models import QuerySet

from messaging.consent import keywords, ledger, suppressions
from messaging.consent.keywords import REPLIES, Keyword, Word
from messaging.consent.suppressions import NewSuppression
from messaging.domain.channels import ALL, Channel
from messaging.feedback.sms_parts import ReceivedSms, assemble
from messaging.models import ConsentEntry, ProviderAccount, Suppression
from messaging.policy import organization_policy
from rme.core import addresses, ids
from rme.core.provider import Dispatch, InboundSms, Sms
from rme.core.redis.rate_limits import Limit, limiter
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import find_by_mobile
from rme.tenants import organizations
from rme.tenants.organizations import OrganizationRecord
from rme.transport.performer import Performer

log = structlog.get_logger(__name__)

REPLIES_PER_HOUR = Limit(4, 3600)
"""Per number, so that an automatic responder cannot keep a conversation going."""


@dataclass(frozen=True, slots=True)
class KeywordReply:
    """A reply to a keyword, to be sent by the account that received it."""

    organization_id: str
    account_id: int
    sms: Sms


@dataclass(frozen=True, slots=True)
class _KeywordSms:
    """An inbound SMS that is a keyword. `number` is the sender's, as E.164."""

    received: ReceivedSms
    word: Word
    number: str
    language: str
    """The language of the keyword; empty if it belongs to several."""


def apply(received: Sequence[ReceivedSms]) -> list[KeywordReply]:
    """Apply the keywords among inbound SMS, and return the replies. Call it in a transaction.

    It needs the database alone; `send_replies` limits how many a number gets.

    The number of statements grows with the organizations, not with the number of SMS.
    """
    by_organization: defaultdict[str, list[tuple[ReceivedSms, Keyword]]] = defaultdict(list)
    for inbound in assemble(sorted(received, key=lambda inbound: inbound.received_at)):
        if keyword := keywords.find(inbound.sms.text, inbound.sms.taken_as):
            by_organization[inbound.organization_id].append((inbound, keyword))
    return [
        reply
        for organization_id, found_there in sorted(by_organization.items())
        for reply in _apply_keywords(organization_id, found_there)
    ]


def _readings(sms: InboundSms, region: str) -> tuple[str, ...]:
    """Return the numbers that a sender may have, likeliest first: with their country code."""
    readings = addresses.phone_readings(sms.sender, region, sms.digits)
    return readings[::-1] or addresses.phone_readings(sms.sender, region)[::-1]


def _apply_keywords(
    organization_id: str, received: Sequence[tuple[ReceivedSms, Keyword]]
) -> list[KeywordReply]:
    """Record consent, add and lift suppressions, and return the replies of an organization."""
    organization = organizations.get(organization_id)
    readings = [_readings(each.sms, organization.region) for each, _ in received]
    contacts = find_by_mobile(
        organization_id, sorted({candidate for variants in readings for candidate in variants})
    )
    keyword_messages = [
        _KeywordSms(
            each,
            keyword.word,
            next((candidate for candidate in numbers if contacts.get(candidate)), numbers[0]),
            keyword.language,
        )
        for (each, keyword), numbers in zip(received, readings, strict=True)
        if numbers
    ]
    resolved = _resolve_yes(organization_id, keyword_messages)
    # Digits that may be two contacts' numbers: nobody knows who wrote STOP, so it holds for both.
    twins = [
        _KeywordSms(each, Word.STOP, number, keyword.language)
        for (each, keyword), numbers in zip(received, readings, strict=True)
        if keyword.word is Word.STOP
        for number in [candidate for candidate in numbers if contacts.get(candidate)][1:]
    ]
    ledger.record(
        organization_id,
        [
            _decision(each, contact)
            for each in [*resolved, *twins]
            if each.word is not Word.HELP
            for contact in contacts.get(each.number, [])
        ],
    )
    last = {each.number: each for each in resolved if each.word is not Word.HELP}
    stopped = sorted(
        {number for number, each in last.items() if each.word is Word.STOP}
        | {each.number for each in twins if each.number not in last}
    )
    suppressions.suppress([_stop(organization_id, number) for number in stopped])
    started = {
        number: each.received.received_at
        for number, each in last.items()
        if each.word is Word.START
    }
    if started:
        lifted = started.keys() - _stopped_later(organization_id, started, contacts)
        suppressions.remove(_stop_suppressions(organization_id, sorted(lifted)))
    return [
        _reply(each, organization, contacts.get(each.number, []))
        for each in resolved
        if not each.received.sms.answered
    ]


def _stopped_later(
    organization_id: str,
    started: Mapping[str, datetime],
    contacts: Mapping[str, Sequence[ContactRecord]],
) -> set[str]:
    """Return the numbers that sent STOP after the START that is applied now.

    Another worker may have applied that STOP before. Of a number without a contact the ledger has
    no STOP, so its START always counts.
    """
    number_of = {each.id: number for number in started for each in contacts.get(number, ())}
    later = ConsentEntry.objects.filter(
        organization_id=organization_id,
        contact_id__in=number_of,
        channel=Channel.SMS,
        source=ConsentEntry.Source.SMS_KEYWORD,
        status=ledger.OPTED_OUT,
        occurred_at__gt=min(started.values()),
    )
    return {
        number_of[contact_id]
        for contact_id, stopped_at in later.values_list("contact_id", "occurred_at")
        if stopped_at > started[number_of[contact_id]]
    }


def _resolve_yes(organization_id: str, keyword_sms: Sequence[_KeywordSms]) -> list[_KeywordSms]:
    """Replace YES by START where the number is stopped at that moment, and drop it elsewhere."""
    numbers = {sms.number for sms in keyword_sms if sms.word is Word.YES}
    rows = _stop_suppressions(organization_id, numbers) if numbers else None
    suppressed = rows.values_list("address", flat=True) if rows is not None else []
    stopped = {
        spelling for address in suppressed for spelling in addresses.phone_spellings(address)
    }
    resolved = []
    for sms in keyword_sms:
        word = Word.START if sms.word is Word.YES and sms.number in stopped else sms.word
        if word is Word.STOP:
            stopped.add(sms.number)
        elif word is Word.START:
            stopped.discard(sms.number)
        if word is not Word.YES:
            resolved.append(replace(sms, word=word))
    return resolved


def _stop(organization_id: str, number: str) -> NewSuppression:
    reason = Suppression.Reason.STOP
    return NewSuppression(organization_id, Channel.SMS, number, reason, "SMS_KEYWORD")


def _stop_suppressions(organization_id: str, numbers: Collection[str]) -> QuerySet[Suppression]:
    """Select the suppressions of numbers that sent STOP, however they are written."""
    spellings = {each for number in numbers for each in addresses.phone_spellings(number)}
    return Suppression.objects.filter(
        organization_id=organization_id,
        channel=Channel.SMS,
        address__in=spellings,
        reason=Suppression.Reason.STOP,
    ).exclude(address="")


def _decision(sms: _KeywordSms, contact: ContactRecord) -> ledger.ConsentDecision:
    opted_out = sms.word is Word.STOP
    return ledger.ConsentDecision(
        contact_id=contact.id,
        channel=Channel.SMS,
        category=ALL,
        status=ledger.OPTED_OUT if opted_out else ledger.OPTED_IN,
        source=ConsentEntry.Source.SMS_KEYWORD,
        occurred_at=sms.received.received_at,
        evidence={
            "text": keywords.evidence_text(sms.received.sms.text),
            "from": sms.number,
            "callback": sms.received.callback_id,
        },
        recorded_by="recipient",
    )


def _reply(
    keyword_sms: _KeywordSms, organization: OrganizationRecord, contacts: Sequence[ContactRecord]
) -> KeywordReply:
    """Build a reply in the language of the keyword, the contact, the organization, or English."""
    languages = (
        keyword_sms.language,
        *(contact.language for contact in contacts),
        organization.language,
        "en",
    )
    code = next(code for text in languages if (code := (text or "")[:2].lower()) in REPLIES)
    received = keyword_sms.received
    text = REPLIES[code][keyword_sms.word].format(name=organization.name)
    sms = Sms(to=keyword_sms.number, text=text, sender=received.sms.to)
    return KeywordReply(received.organization_id, received.account_id, sms)


def _within_limit(replies: Sequence[KeywordReply]) -> list[KeywordReply]:
    """Return the replies that their numbers may get, by one call to Redis."""
    keys = [f"sms-answer:{reply.organization_id}:{reply.sms.to}" for reply in replies]
    takes = {key: ([REPLIES_PER_HOUR], count) for key, count in Counter(keys).items()}
    decisions_by_key = {key: iter(decisions) for key, decisions in limiter.take_each(takes).items()}
    return [
        reply
        for key, reply in zip(keys, replies, strict=True)
        if next(decisions_by_key[key]).allowed
    ]


def send_replies(replies: Sequence[KeywordReply], transport: Performer) -> None:
    """Send replies, once each: one that is lost with its process is not sent again.

    They leave by the account without pre-send checks: the confirmation of STOP must pass. Call it
    after the commit: the limit asks Redis, which may be slow, and the gate lock stops all sends.
    """
    by_account: defaultdict[int, list[Sms]] = defaultdict(list)
    for reply in _within_limit(replies):
        by_account[reply.account_id].append(reply.sms)
    for row in ProviderAccount.objects.filter(pk__in=by_account):
        provider = organization_policy.account_of(row).provider
        if provider is None:
            continue
        dispatches = [Dispatch(ids.new_text_id(), sms) for sms in by_account[row.pk]]
        for outcome in provider.send(dispatches, transport):
            log.info("sms.answered", account_id=row.pk, outcome=type(outcome).__name__)
