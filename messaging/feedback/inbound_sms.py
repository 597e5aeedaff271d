"""What people write to us by SMS: STOP, START and HELP.

| word | consent (SMS, all categories) | suppression of the number | answer |
|---|---|---|---|
| STOP | OPTED_OUT | STOP enters | a confirmation, the last we send |
| START | OPTED_IN | STOP is lifted | a confirmation |
| YES | as START, of a number that wrote STOP | the same | the same |
| HELP | – | – | who we are and how to stop |

The whole message is the word (`keywords`). Everything else is left to people: the call that brought
it is kept for some days. YES answers many a question: it is a word of ours only after STOP.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import structlog
from django.db.models import QuerySet

from messaging.consent import keywords, ledger, suppressions
from messaging.consent.keywords import REPLIES, Word
from messaging.feedback.sms_parts import ReceivedSms, assemble
from messaging.models import ConsentEntry, ProviderAccount, Suppression
from messaging.policy import organization_policy
from rme.core import addresses, ids
from rme.core.channels import ALL, Channel
from rme.core.provider import Dispatch, Sms
from rme.core.redis.rate_limits import Limit, limiter
from rme.crm.connectors.records import ContactRecord
from rme.crm.contacts import find_by_mobile
from rme.tenants import organizations
from rme.tenants.organizations import OrganizationRecord
from rme.transport import Transport

log = structlog.get_logger(__name__)


ANSWERS_AN_HOUR = Limit(4, 3600)
"""To one number: a machine that answers machines must not keep us talking."""


@dataclass(frozen=True, slots=True)
class KeywordReply:
    """A confirmation to be sent, by the account that was written to."""

    organization_id: str
    account_id: int
    sms: Sms


@dataclass(frozen=True, slots=True)
class _Heard:
    """A letter that is a word, from a number in its normal form."""

    letter: ReceivedSms
    word: Word
    number: str
    language: str
    """The word's own; empty: it is of several."""


def apply(letters: Sequence[ReceivedSms]) -> list[KeywordReply]:
    """Do what people want, and give what they are to be told; belongs into a transaction.

    The number of statements grows with the organizations written to, not with the letters.
    """
    by_organization: defaultdict[str, list[_Heard]] = defaultdict(list)
    for letter in assemble(sorted(letters, key=lambda each: each.received_at)):
        found = keywords.find(letter.said.text)
        number = addresses.phone(letter.said.sender, None)
        if found and number:
            heard = _Heard(letter, found.word, number, found.language)
            by_organization[letter.organization_id].append(heard)
    return [
        answer
        for organization_id, heard in sorted(by_organization.items())
        for answer in _obey(organization_id, heard)
    ]


def _obey(organization_id: str, said: Sequence[_Heard]) -> list[KeywordReply]:
    heard = _understood(organization_id, said)
    people = find_by_mobile(organization_id, sorted({each.number for each in heard}))
    ledger.record(
        organization_id,
        [
            _decision(each, contact)
            for each in heard
            if each.word is not Word.HELP
            for contact in people.get(each.number, [])
        ],
    )
    last = {each.number: each.word for each in heard if each.word is not Word.HELP}
    suppressions.suppress(
        [
            suppressions.NewSuppression(
                organization_id, Channel.SMS, number, Suppression.Reason.STOP, "SMS_KEYWORD"
            )
            for number, word in sorted(last.items())
            if word is Word.STOP
        ]
    )
    if lifted := sorted(number for number, word in last.items() if word is Word.START):
        _stops(organization_id, lifted).delete()
    organization = organizations.get(organization_id)
    return [
        _answer(each, organization, people.get(each.number, []))
        for each in heard
        if not each.letter.said.answered and _may_answer(each)
    ]


def _understood(organization_id: str, said: Sequence[_Heard]) -> list[_Heard]:
    """Take YES for START where the number is stopped, and for nothing elsewhere."""
    asked = {each.number for each in said if each.word is Word.YES}
    stopped = (
        set(_stops(organization_id, asked).values_list("address", flat=True)) if asked else set()
    )
    heard = []
    for each in said:
        word = Word.START if each.word is Word.YES and each.number in stopped else each.word
        if word is Word.STOP:
            stopped.add(each.number)
        elif word is Word.START:
            stopped.discard(each.number)
        if word is not Word.YES:
            heard.append(replace(each, word=word))
    return heard


def _stops(organization_id: str, numbers: Collection[str]) -> QuerySet[Suppression]:
    """Find the numbers that are suppressed since they wrote STOP."""
    return Suppression.objects.filter(
        organization_id=organization_id,
        channel=Channel.SMS,
        address__in=numbers,
        reason=Suppression.Reason.STOP,
    ).exclude(address="")


def _decision(each: _Heard, contact: ContactRecord) -> ledger.ConsentDecision:
    out = each.word is Word.STOP
    return ledger.ConsentDecision(
        contact_id=contact.id,
        channel=Channel.SMS,
        category=ALL,
        status=ledger.OPTED_OUT if out else ledger.OPTED_IN,
        source=ConsentEntry.Source.SMS_KEYWORD,
        occurred_at=each.letter.received_at,
        evidence={
            "text": keywords.evidence_text(each.letter.said.text),
            "from": each.number,
            "callback": each.letter.callback_id,
        },
        recorded_by="recipient",
    )


def _may_answer(each: _Heard) -> bool:
    key = f"sms-answer:{each.letter.organization_id}:{each.number}"
    return limiter.take(key, ANSWERS_AN_HOUR).allowed


def _answer(
    each: _Heard, organization: OrganizationRecord, people: Sequence[ContactRecord]
) -> KeywordReply:
    """Answer in the word's own language, else the person's, the organization's, or English."""
    spoken = (each.language, *(p.language for p in people), organization.language, "en")
    language = next(code for text in spoken if (code := (text or "")[:2].lower()) in REPLIES)
    text = REPLIES[language][each.word].format(name=organization.name)
    letter = each.letter
    sms = Sms(to=each.number, text=text, sender=letter.said.to)
    return KeywordReply(letter.organization_id, letter.account_id, sms)


def send_replies(answers: Sequence[KeywordReply], transport: Transport) -> None:
    """Send answers, once each: one that is lost with its process is not sent again.

    They go by the account alone, past the gates: whoever wrote STOP is told so.
    """
    by_account: defaultdict[int, list[Sms]] = defaultdict(list)
    for answer in answers:
        by_account[answer.account_id].append(answer.sms)
    for row in ProviderAccount.objects.filter(pk__in=by_account):
        provider = organization_policy.account_of(row).provider
        if provider is None:
            continue
        dispatches = [Dispatch(ids.new_text_id(), sms) for sms in by_account[row.pk]]
        for outcome in provider.send(dispatches, transport):
            log.info("sms.answered", account_id=row.pk, outcome=type(outcome).__name__)
