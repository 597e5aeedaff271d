"""Requests, contacts and accounts as values, and their drafts and plans."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from messaging.domain.channels import Channel
from messaging.domain.gates import GateRefusal, GateVerdict
from messaging.domain.planning import (
    OptionFacts,
    PlanFacts,
    PlannedContact,
    RequestedRecipient,
    RequestFacts,
    SendRequest,
    draft_each,
    outline,
    plan,
)
from messaging.domain.policy import BUILT_IN, Domain, SendingPolicy, SendingRulesRecord

NOW = datetime(2026, 11, 23, 21, 0, tzinfo=UTC)
SENDER = Domain("acme.example", "no-reply", "Acme")
SENDING = SendingRulesRecord(
    quiet_hours={"EMAIL": {"from": "20:00", "until": "08:00"}},
    quiet_transactional=False,
    schedule_grace=timedelta(hours=1),
    sends_per_second=None,
    sends_per_day=1000,
    double_opt_in=False,
    track_opens=False,
    track_clicks=False,
)
POLICY = SendingPolicy(BUILT_IN, {SENDER.domain: SENDER}, SENDER, SENDING)


class Organization(NamedTuple):
    id: str = "acme"
    language: str = "en"
    locale_fallback: bool = True
    zone: str = "UTC"


class Account(NamedTuple):
    id: int
    name: str


class Version(NamedTuple):
    version_id: int
    category: str = "TRANSACTIONAL"
    variables: dict = {}


ADA = PlannedContact("ada", "", "UTC", email="ada@example.com", phone="+12125550100")
MAIL, TEXTER = Account(7, "mail"), Account(8, "texter")
PASSED = {
    Channel.EMAIL: OptionFacts(GateVerdict(None, "consent"), MAIL),
    Channel.SMS: OptionFacts(GateVerdict(), TEXTER),
}
SUPPRESSED = OptionFacts(GateVerdict(GateRefusal.SUPPRESSED, "entry"))
REQUEST = SendRequest(
    organization=Organization(),
    is_test=False,
    category="TRANSACTIONAL",
    may_send=True,
    channels=[Channel.EMAIL, Channel.SMS],
    recipients=[RequestedRecipient("ada", {})],
    template=None,
    literal_channels=[Channel.EMAIL, Channel.SMS],
    sender_domain=None,
    sender_name="",
    record_id=None,
    variables=None,
    schedule=None,
)


def too_long(name):
    return "too long" if len(name) > 11 else None


def outlined(*contact_ids, policy=POLICY, **fields):
    recipients = [RequestedRecipient(each, {}) for each in contact_ids or ("ada",)]
    request = REQUEST._replace(**{"recipients": recipients, **fields})
    return outline(request, policy, too_long)


def drafted(*contact_ids, contacts=(ADA,), versions=None, record=None, **fields):
    by_id = {contact.id: contact for contact in contacts}
    facts = RequestFacts(by_id, record, versions or {})
    (draft,) = draft_each([(outlined(*contact_ids, **fields), facts)], NOW)
    return draft


def planned(draft, options=PASSED, *, problems=()):
    return planned_each([PlanFacts(draft, problems, options_of(draft, options))])[0]


def options_of(draft, options):
    return [[options[option.channel] for option in each.options] for each in draft.recipients]


def planned_each(facts):
    return plan(facts, NOW, spell=lambda address: (address,))


def problems_of(refusal):
    return [tuple(problem) for problem in refusal.fields]
