"""The plan of a request follows from values alone: no database, no clock."""

from datetime import UTC, datetime

from messaging.domain.accounts.admission import Backlog
from messaging.domain.channels import Channel
from messaging.domain.gates import GateVerdict
from messaging.domain.planning import (
    RATE_TOO_SLOW,
    OptionFacts,
    PlanFacts,
    RefusalCode,
    SendRefusal,
    draft_each,
)
from messaging.domain.statuses import Status
from tests.messaging.domain.planning.scene import (
    ADA,
    MAIL,
    NOW,
    PASSED,
    SUPPRESSED,
    drafted,
    options_of,
    outlined,
    planned,
    planned_each,
    problems_of,
)

FULL = Backlog(("acme",), messages=8.0, rate=1, life=10.0)


def test_first_usable_channel_is_chosen_and_others_are_fallbacks():
    (recipient,) = planned(drafted()).recipients
    assert (recipient.chosen.channel, recipient.account) == (Channel.EMAIL, MAIL)
    assert (recipient.status, recipient.next_channels) == (Status.ACCEPTED, [Channel.SMS])
    assert recipient.trace == [["EMAIL", "CHOSEN", "consent"]]


def test_only_channel_chosen_leaves_no_trace():
    options = {Channel.EMAIL: OptionFacts(GateVerdict(), MAIL)}
    (recipient,) = planned(drafted(channels=[Channel.EMAIL]), options).recipients
    assert (recipient.trace, recipient.next_channels) == (None, [])


def test_channel_behind_a_gate_is_skipped_and_noted():
    (recipient,) = planned(drafted(), {**PASSED, Channel.EMAIL: SUPPRESSED}).recipients
    assert (recipient.chosen.channel, recipient.next_channels) == (Channel.SMS, [])
    assert recipient.trace == [["EMAIL", "SUPPRESSED", "entry"], ["SMS", "CHOSEN", None]]


def test_recipient_without_a_channel_has_the_first_refusal():
    no_account = OptionFacts(GateVerdict())
    plan = planned(drafted(), {Channel.EMAIL: SUPPRESSED, Channel.SMS: no_account})
    (recipient,) = plan.recipients
    assert (recipient.status, recipient.refusal.code) == (Status.BLOCKED, RefusalCode.SUPPRESSED)
    plan = planned(drafted(), {Channel.EMAIL: no_account, Channel.SMS: SUPPRESSED})
    assert plan.recipients[0].status is Status.FAILED
    assert plan.recipients[0].refusal.text == "No provider account for email."
    assert plan.refusal is None  # it is stored


def test_recipient_without_any_address_is_unreachable():
    nobody = ADA._replace(email=None, phone=None)
    (recipient,) = planned(drafted(contacts=[nobody])).recipients
    assert recipient.refusal == SendRefusal(RefusalCode.UNREACHABLE)


def test_second_contact_of_an_address_is_refused():
    bob = ADA._replace(id="bob")
    first, second = planned(drafted("ada", "bob", contacts=[ADA, bob])).recipients
    assert first.chosen.channel is Channel.EMAIL
    assert (second.status, second.refusal.code) == (Status.BLOCKED, RefusalCode.DUPLICATE_ADDRESS)
    assert second.trace == [["EMAIL", "DUPLICATE_ADDRESS", None]]


def test_marketing_in_quiet_hours_waits_for_their_end():
    (recipient,) = planned(drafted(category="MARKETING")).recipients
    assert recipient.scheduled_for == datetime(2026, 11, 24, 8, 0, tzinfo=UTC)
    assert recipient.status is Status.SCHEDULED
    assert recipient.trace[1] == ["EMAIL", "QUIET_HOURS", "2026-11-24T08:00:00Z"]


def test_requests_of_one_set_count_against_the_same_backlog():
    options = {Channel.EMAIL: OptionFacts(GateVerdict(), MAIL, FULL)}
    draft = drafted(channels=[Channel.EMAIL])
    plans = planned_each([PlanFacts(draft, (), options_of(draft, options))] * 3)
    too_slow = SendRefusal(RefusalCode.RATE_LIMITED, RATE_TOO_SLOW, retry_after=1)
    assert [plan.refusal for plan in plans] == [None, None, too_slow]
    assert [plan.is_repeatable for plan in plans] == [False, False, True]
    assert [plan.backlogs for plan in plans] == [[FULL], [FULL], []]


def test_another_channel_takes_what_a_rate_refuses():
    options = {**PASSED, Channel.EMAIL: OptionFacts(GateVerdict(), MAIL, FULL._replace(life=1.0))}
    plan = planned(drafted(), options)
    assert (plan.refusal, plan.recipients[0].chosen.channel) == (None, Channel.SMS)


def test_missing_variables_name_their_expected_place():
    problems = [[("order.id", "is required"), ("order.id", "is required")]]
    plan = planned(drafted(variables={"name": "x"}), problems=problems)
    assert problems_of(plan.refusal) == [("context.variables.order.id", "is required")]
    assert plan.refusal.text == "context.variables.order.id: is required"
    plan = planned(drafted(), problems=problems)
    assert problems_of(plan.refusal) == [("to[0].variables.order.id", "is required")]


def test_refused_request_keeps_its_recipients_undecided():
    outline = outlined(category="NONE")
    (draft,) = draft_each([(outline, None)], NOW)
    (plan,) = planned_each([PlanFacts(draft)])
    assert plan.refusal is outline.refusal
    assert [(r.chosen, r.status) for r in plan.recipients] == [(None, Status.ACCEPTED)]
