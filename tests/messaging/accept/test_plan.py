"""The plan of a request follows from values alone: no database, no clock."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from messaging.accept.drafts import Option, RequestFacts, draft
from messaging.accept.plan import Facts, OptionFacts, plan
from messaging.accept.requests import MESSAGE
from messaging.accept.send_request import outline
from messaging.consent.gates import GateResult
from messaging.domain.admission import Backlog
from messaging.domain.channels import Channel
from messaging.domain.policy import BUILT_IN, Domain, SendingRulesRecord
from messaging.domain.statuses import Status
from messaging.policy.organization_policy import Account, Policy
from rme.core import errors
from rme.core.http.parsing import parse
from rme.crm.connectors.records import ContactRecord
from rme.tenants.oauth.authentication import Caller
from rme.tenants.oauth.permissions import Grants
from rme.tenants.organizations import OrganizationRecord

NOW = datetime(2026, 11, 23, 21, 0, tzinfo=UTC)
ORGANIZATION = OrganizationRecord("acme", "Acme", "UTC", "en", "", True, "", 100, 1000)
CALLER = Caller(ORGANIZATION, 1, 2, test=False)
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
POLICY = Policy(BUILT_IN, {SENDER.domain: SENDER}, SENDER, (), SENDING)
ADA = ContactRecord("ada", email="ada@example.com", mobile="+12125550100", zone="UTC")
MAIL = Account(7, "mail", Channel.EMAIL, None)
TEXTER = Account(8, "texter", Channel.SMS, None)
PASSED = {
    Channel.EMAIL: OptionFacts(GateResult(None, "consent"), MAIL),
    Channel.SMS: OptionFacts(GateResult(), TEXTER),
}
SUPPRESSED = OptionFacts(GateResult(errors.Suppressed, "entry"))


def message(*contact_ids, **fields):
    body = {
        "channels": ["EMAIL", "SMS"],
        "category": "TRANSACTIONAL",
        "to": [{"contactId": contact_id} for contact_id in contact_ids or ("ada",)],
        "content": {"subject": "s", "text": "t"},
        **fields,
    }
    return parse(MESSAGE, {name: value for name, value in body.items() if value is not None})


def outlined(*contact_ids, policy=POLICY, caller=CALLER, **fields):
    return outline(caller, policy, message(*contact_ids, **fields))


def drafted(*contact_ids, contacts=(ADA,), templates=None, record=None, **fields):
    facts = RequestFacts(
        NOW, {contact.id: contact for contact in contacts}, {}, record, templates or {}
    )
    return draft(outlined(*contact_ids, **fields), facts)


def planned(a_draft, options=PASSED, *, problems=None, error=None):
    by_place = {
        (recipient.position, option.channel): options[option.channel]
        for recipient in a_draft.recipients
        for option in recipient.options
    }
    per_recipient = problems or [[] for _ in a_draft.recipients]
    (result,) = plan([Facts(a_draft, per_recipient, error, by_place, NOW)])
    return result


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"category": "NONE"}, "category"),
        ({"from": {"domain": "other.example"}}, "from.domain"),
        ({"to": [{"contactId": "ada"}, {"contactId": "ada"}]}, "to[1].contactId"),
        ({"channels": ["SMS"], "from": {"name": "longer than allowed"}}, "from.name"),
    ],
)
def test_request_against_the_policy_is_refused_with_its_field(fields, field):
    error = outlined(**fields).error
    assert isinstance(error, errors.InvalidPayload)
    assert [detail.field for detail in error.details] == [field]


def test_category_not_granted_to_the_application_is_forbidden():
    caller = replace(CALLER, grants=Grants(frozenset(), frozenset({"MARKETING"})))
    assert isinstance(outlined(caller=caller).error, errors.Forbidden)


def test_sender_name_unusable_for_sms_is_a_warning_if_email_is_possible():
    request = outlined(**{"from": {"name": "longer than allowed"}})
    assert (request.error, request.sms_sender) == (None, "")
    assert [warning.field for warning in request.warnings] == ["from.name"]


def test_draft_has_the_channels_with_an_address():
    only_mail = ADA._replace(mobile="")
    (recipient,) = drafted(contacts=[only_mail]).recipients
    assert recipient.options == (Option(Channel.EMAIL, "ada@example.com"),)
    assert [tuple(decision) for decision in recipient.decisions] == [("SMS", "UNREACHABLE", None)]


def test_unknown_contact_is_rejected_alone():
    a_draft = drafted("ada", "bob")
    assert [recipient.error and recipient.error.code for recipient in a_draft.recipients] == [
        None,
        "NOT_FOUND",
    ]
    assert a_draft.error is None


def test_unknown_record_refuses_the_request():
    error = drafted(context={"recordId": "none"}).error
    assert isinstance(error, errors.NotFound)
    assert drafted(context={"recordId": "order"}, record={"id": "order"}).error is None


def test_content_unsuitable_for_every_channel_is_rejected():
    a_draft = drafted(channels=["EMAIL"], content={"text": "t"})
    assert isinstance(a_draft.error, errors.InvalidPayload)
    assert [detail.field for detail in a_draft.error.details] == ["content.subject"]


def test_local_time_already_passed_expires_the_recipient():
    schedule = {"mode": "LOCAL", "time": "09:00", "date": "2026-11-23"}
    (recipient,) = drafted(schedule=schedule).recipients
    assert (recipient.status, recipient.error.code) == (Status.EXPIRED, "INVALID_PAYLOAD")


def test_first_usable_channel_is_chosen_and_others_are_fallbacks():
    (recipient,) = planned(drafted()).recipients
    assert (recipient.chosen.channel, recipient.account) == (Channel.EMAIL, MAIL)
    assert (recipient.status, recipient.next_channels) == (Status.ACCEPTED, [Channel.SMS])
    assert recipient.trace == [["EMAIL", "CHOSEN", "consent"]]


def test_channel_behind_a_gate_is_skipped_and_noted():
    (recipient,) = planned(drafted(), {**PASSED, Channel.EMAIL: SUPPRESSED}).recipients
    assert (recipient.chosen.channel, recipient.next_channels) == (Channel.SMS, [])
    assert recipient.trace == [["EMAIL", "SUPPRESSED", "entry"], ["SMS", "CHOSEN", None]]


def test_recipient_without_a_channel_has_the_first_error():
    no_account = OptionFacts(GateResult())
    a_plan = planned(drafted(), {Channel.EMAIL: SUPPRESSED, Channel.SMS: no_account})
    (recipient,) = a_plan.recipients
    assert (recipient.status, recipient.error.code) == (Status.BLOCKED, "SUPPRESSED")
    a_plan = planned(drafted(), {Channel.EMAIL: no_account, Channel.SMS: SUPPRESSED})
    assert a_plan.recipients[0].status is Status.FAILED
    assert a_plan.refusal is None  # it is stored


def test_second_contact_of_an_address_is_refused():
    bob = ADA._replace(id="bob")
    first, second = planned(drafted("ada", "bob", contacts=[ADA, bob])).recipients
    assert first.chosen.channel is Channel.EMAIL
    assert (second.status, second.error.code) == (Status.BLOCKED, "DUPLICATE_ADDRESS")
    assert second.trace == [["EMAIL", "DUPLICATE_ADDRESS", None]]


def test_marketing_in_quiet_hours_waits_for_their_end():
    (recipient,) = planned(drafted(category="MARKETING")).recipients
    assert recipient.scheduled_for == datetime(2026, 11, 24, 8, 0, tzinfo=UTC)
    assert recipient.status is Status.SCHEDULED
    assert [decision.result for decision in recipient.decisions] == ["CHOSEN", "QUIET_HOURS"]


def test_requests_of_one_set_count_against_the_same_backlog():
    backlog = Backlog(("acme",), messages=8.0, rate=1, life=10.0)
    options = {**PASSED, Channel.EMAIL: OptionFacts(GateResult(), MAIL, backlog)}
    a_draft = drafted(channels=["EMAIL"])
    facts = Facts(a_draft, [[]], None, {(0, Channel.EMAIL): options[Channel.EMAIL]}, NOW)
    plans = plan([facts] * 3)
    assert [a_plan.error and a_plan.error.code for a_plan in plans] == [None, None, "RATE_LIMITED"]
    assert [a_plan.backlogs for a_plan in plans] == [[backlog], [backlog], []]


def test_missing_variables_name_their_expected_place():
    problems = [[("order.id", "is required")]]
    a_plan = planned(drafted(context={"variables": {"name": "x"}}), problems=problems)
    missing = errors.Detail("context.variables.order.id", "is required")
    assert list(a_plan.refusal.details) == [missing]
    a_plan = planned(drafted(), problems=problems)
    assert a_plan.refusal.details[0].field == "to[0].variables.order.id"


def test_refused_request_keeps_its_recipients_undecided():
    request = outlined(category="NONE")
    (a_plan,) = plan([Facts(draft(request, None), [], None, {}, NOW)])
    assert a_plan.refusal is request.error
    assert [(r.chosen, r.status) for r in a_plan.recipients] == [(None, Status.ACCEPTED)]
