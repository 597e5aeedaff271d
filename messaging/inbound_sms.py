"""What people write to us by SMS: STOP, START and HELP.

| word | consent (SMS, all categories) | suppression of the number | answer |
|---|---|---|---|
| STOP | OPTED_OUT | STOP enters | a confirmation, the last we send |
| START | OPTED_IN | STOP is lifted | a confirmation |
| HELP | – | – | who we are and how to stop |

The whole message is the word, in any case and with any signs around it. Everything else is left to
people: the call that brought it is kept for some days.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import structlog

from messaging import consent, policy, suppression
from messaging.models import ConsentEntry, ProviderAccount, Suppression
from messaging.providers.base import Dispatch, Inbound, Sms
from rme.core import addresses, ids
from rme.core.channels import ALL, Channel
from rme.core.limits import Limit, limiter
from rme.core.transport import Transport
from rme.crm.connectors.base import ContactRecord
from rme.crm.contacts import find_by_mobile
from rme.tenants import organizations

log = structlog.get_logger(__name__)


class Word(StrEnum):
    """What a person wants."""

    STOP = "STOP"
    START = "START"
    HELP = "HELP"


WORDS: dict[str, Word] = {
    **dict.fromkeys(
        ("STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"), Word.STOP
    ),
    **dict.fromkeys(("STOPP", "ABMELDEN", "ARRET", "ARRÊT", "BASTA", "BAJA", "ALTO"), Word.STOP),
    **dict.fromkeys(("START", "UNSTOP", "SUBSCRIBE"), Word.START),
    **dict.fromkeys(("HELP", "INFO", "HILFE", "AIDE", "AIUTO", "AYUDA"), Word.HELP),
}
_SIGNS = re.compile(r"[\W_]+")
ANSWERS_AN_HOUR = Limit(4, 3600)
"""To one number: a machine that answers machines must not keep us talking."""

TEXTS: dict[str, dict[Word, str]] = {
    "en": {
        Word.STOP: "{name}: You will get no more text messages. Reply START to change that.",
        Word.START: "{name}: You will get our text messages again. Reply STOP to end them.",
        Word.HELP: "{name}: Reply STOP to get no more text messages, START to get them again.",
    },
    "de": {
        Word.STOP: "{name}: Sie erhalten keine SMS mehr von uns. Mit START ändern Sie das.",
        Word.START: "{name}: Sie erhalten wieder SMS von uns. Mit STOP beenden Sie das.",
        Word.HELP: "{name}: STOP beendet unsere SMS, mit START erhalten Sie sie wieder.",
    },
    "fr": {
        Word.STOP: "{name} : vous ne recevrez plus de SMS. Répondez START pour en recevoir.",
        Word.START: "{name} : vous recevrez à nouveau nos SMS. Répondez STOP pour arrêter.",
        Word.HELP: "{name} : répondez STOP pour ne plus recevoir de SMS, START pour en recevoir.",
    },
    "it": {
        Word.STOP: "{name}: non riceverà più SMS da noi. Risponda START per riceverli di nuovo.",
        Word.START: "{name}: riceverà di nuovo i nostri SMS. Risponda STOP per non riceverli più.",
        Word.HELP: "{name}: risponda STOP per non ricevere più SMS, START per riceverli di nuovo.",
    },
    "es": {
        Word.STOP: "{name}: no recibirá más SMS. Responda START para volver a recibirlos.",
        Word.START: "{name}: volverá a recibir SMS. Responda STOP para dejar de recibirlos.",
        Word.HELP: "{name}: responda STOP para no recibir más SMS, START para volver a recibirlos.",
    },
}


@dataclass(frozen=True, slots=True)
class Letter:
    """What somebody wrote to an account of an organization, and the call that brought it."""

    organization_id: str
    account_id: int
    said: Inbound
    received_at: datetime
    callback_id: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A confirmation to be sent, by the account that was written to."""

    organization_id: str
    account_id: int
    sms: Sms


@dataclass(frozen=True, slots=True)
class _Heard:
    """A letter that is a word, from a number in its normal form."""

    letter: Letter
    word: Word
    number: str


def word_of(text: str) -> Word | None:
    """Say which word a message is; None: it is none."""
    return WORDS.get(_SIGNS.sub("", text[:200]).upper())


def apply(letters: Sequence[Letter]) -> list[Answer]:
    """Do what people want, and give what they are to be told; belongs into a transaction.

    The number of statements grows with the organizations written to, not with the letters.
    """
    by_organization: defaultdict[str, list[_Heard]] = defaultdict(list)
    for letter in sorted(letters, key=lambda each: each.received_at):
        word = word_of(letter.said.text)
        number = addresses.phone(letter.said.sender, None)
        if word and number:
            by_organization[letter.organization_id].append(_Heard(letter, word, number))
    return [
        answer
        for organization_id, heard in sorted(by_organization.items())
        for answer in _obey(organization_id, heard)
    ]


def _obey(organization_id: str, heard: Sequence[_Heard]) -> list[Answer]:
    people = find_by_mobile(organization_id, sorted({each.number for each in heard}))
    consent.record(
        organization_id,
        [
            _decision(each, contact)
            for each in heard
            if each.word is not Word.HELP
            for contact in people.get(each.number, [])
        ],
    )
    last = {each.number: each.word for each in heard if each.word is not Word.HELP}
    suppression.suppress(
        [
            suppression.Entry(
                organization_id, Channel.SMS, number, Suppression.Reason.STOP, "SMS_KEYWORD"
            )
            for number, word in sorted(last.items())
            if word is Word.STOP
        ]
    )
    if lifted := sorted(number for number, word in last.items() if word is Word.START):
        Suppression.objects.filter(
            organization_id=organization_id,
            channel=Channel.SMS,
            address__in=lifted,
            reason=Suppression.Reason.STOP,
        ).exclude(address="").delete()
    name = organizations.get(organization_id).name
    return [
        _answer(each, name, people.get(each.number, []))
        for each in heard
        if not each.letter.said.answered and _may_answer(each)
    ]


def _decision(each: _Heard, contact: ContactRecord) -> consent.Decision:
    out = each.word is Word.STOP
    return consent.Decision(
        contact_id=contact.id,
        channel=Channel.SMS,
        category=ALL,
        status=consent.OPTED_OUT if out else consent.OPTED_IN,
        source=ConsentEntry.Source.SMS_KEYWORD,
        occurred_at=each.letter.received_at,
        evidence={
            "text": _SIGNS.sub(" ", each.letter.said.text[:200]).strip(),
            "from": each.number,
            "callback": each.letter.callback_id,
        },
        recorded_by="recipient",
    )


def _may_answer(each: _Heard) -> bool:
    key = f"sms-answer:{each.letter.organization_id}:{each.number}"
    return limiter.take(key, ANSWERS_AN_HOUR).allowed


def _answer(each: _Heard, name: str, people: Sequence[ContactRecord]) -> Answer:
    language = next((p.language[:2].lower() for p in people if p.language), "")
    text = TEXTS.get(language, TEXTS["en"])[each.word].format(name=name)
    letter = each.letter
    sms = Sms(to=each.number, text=text, sender=letter.said.to)
    return Answer(letter.organization_id, letter.account_id, sms)


def send(answers: Sequence[Answer], transport: Transport) -> None:
    """Send answers, once each: one that is lost with its process is not sent again.

    They go by the account alone, past the gates: whoever wrote STOP is told so.
    """
    by_account: defaultdict[int, list[Sms]] = defaultdict(list)
    for answer in answers:
        by_account[answer.account_id].append(answer.sms)
    for row in ProviderAccount.objects.filter(pk__in=by_account):
        provider = policy.account_of(row).provider
        if provider is None:
            continue
        dispatches = [Dispatch(ids.new_id(), sms) for sms in by_account[row.pk]]
        for outcome in provider.send(dispatches, transport):
            log.info("sms.answered", account_id=row.pk, outcome=type(outcome).__name__)
