"""The lanes: the accounts of each channel in their order, what waits, and how the order changes."""

import html

import pytest

from messaging.delivery.accounts import CircuitState, circuits
from messaging.domain.attention import AccountStatus
from messaging.models import Attempt, ProviderAccount
from messaging.policy import organization_policy
from messaging.reports import account_hour
from messaging.reports.account_hour import AccountHour
from rme.core.outcomes import Misconfigured
from rme.tenants.models import Organization
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.rest import Api, message, work

pytestmark = pytest.mark.django_db


def accounts(org, *priorities, **fields):
    return [
        ProviderAccount.objects.create(
            organization=org, name=f"a{number}", kind="simulator", channel="EMAIL",
            priority=priority, **fields,
        )
        for number, priority in enumerate(priorities, 1)
    ]  # fmt: skip


def order(rows, places, **fields):
    """Return what the form of a lane sends."""
    given = {f"step_{row.pk}": place for row, place in zip(rows, places, strict=True)}
    weights = {f"weight_{row.pk}": 1 for row in rows}
    return {"channel": "EMAIL", "why": "cheaper", **given, **weights, **fields}


@pytest.mark.parametrize("count", [1, 4])
def test_the_page_asks_as_much_for_one_account_as_for_many(
    root, org, count, django_assert_num_queries
):
    accounts(org, *range(count))
    root.get(url("providers"))
    with django_assert_num_queries(8):
        shown = root.get(url("providers"))
    lanes = {lane.channel: len(lane.cards) for lane, *_ in shown.context["lanes"]}
    assert lanes == {"EMAIL": count, "SMS": 0, "PUSH": 0}


def test_lane_shows_shares_and_waiting_messages(root, org):
    _, second, third = accounts(org, 10, 10, 20)
    ProviderAccount.objects.filter(pk=second.pk).update(weight=3, match=["b.example"], rate=5)
    ProviderAccount.objects.filter(pk=third.pk).update(state="PAUSED", state_reason="dear")
    Organization.objects.filter(pk=org.pk).update(simulator=True)
    Api(org).send(message(factories.contact(org)))
    shown = root.get(url("providers"))
    email, sms, _ = (lane for lane, *_ in shown.context["lanes"])
    assert [(card.step, card.share) for card in email.cards] == [
        (1, "25%"), (1, "75%"), (2, "None"),
    ]  # fmt: skip
    assert email.backlog.startswith("1 message is waiting")
    assert (email.is_simulated, sms.is_simulated) == (False, True)
    text = " ".join(shown.content.decode().split())
    for part in ("b.example", "5 per second", "Paused", "dear", "Nothing sent"):
        assert part in text
    assert (
        "SMS isn't delivered: there is no active provider, so the simulator receives it."
        in html.unescape(text)
    )


def test_the_page_shows_each_accounts_last_hour(root, org):
    account, idle = accounts(org, 1, 2)
    api = Api(org)
    for address in ("ada", "reject", "unknown"):
        api.send(message(factories.contact(org, email=f"{address}@simulator.rme.test")))
    work()
    Attempt.objects.update(latency_ms=7)
    hours = account_hour.read([account, idle])
    assert hours[idle.pk] == AccountHour(
        CircuitState.CLOSED, AccountStatus.OK, None, account_hour.NOTHING
    )
    outcomes = hours[account.pk].outcomes
    assert (outcomes.sends, outcomes.accepted, outcomes.answered, outcomes.p95_ms) == (3, 1, 2, 7)
    assert hours[account.pk].sentence == (
        "a1 is failing: its provider accepted 1 of 2 attempts in the last hour."
    )
    text = root.get(url("providers")).content.decode()
    assert "3 sent: 1 accepted, 1 failed, p95 7 ms" in text
    assert "Nothing sent" in text
    assert account_hour.read([]) == {}


@pytest.mark.parametrize("count", [1, 4])
def test_last_hours_are_read_once_for_all_accounts(org, count, django_assert_num_queries):
    rows = accounts(org, *range(count))
    with django_assert_num_queries(1):
        assert len(account_hour.read(rows)) == count


def test_several_accounts_are_paused_and_activated(root, org):
    rows = accounts(org, 1, 2, 3)
    form = {"channel": "EMAIL", "accounts": [rows[0].pk, rows[2].pk]}
    shown = root.post(url("providers"), {**form, "do": "PAUSED", "why": "outage"}, follow=True)
    assert "Paused: a1, a3." in shown.content.decode()
    assert states() == {
        "a1": ("PAUSED", "outage"),
        "a2": ("ACTIVE", ""),
        "a3": ("PAUSED", "outage"),
    }
    assert [each.active for each in organization_policy.of(org.pk).accounts] == [False, True, False]
    assert audited.lines() == ["state: ACTIVE → PAUSED", "reason: outage"] * 2
    root.post(url("providers"), {**form, "do": "ACTIVE", "why": "over"})
    assert set(states().values()) == {("ACTIVE", "")}
    assert audited.lines()[4:] == ["state: PAUSED → ACTIVE", "reason: over"] * 2
    root.post(url("providers"), {**form, "do": "DRAINING", "why": "moved"})
    assert states()["a1"] == ("DRAINING", "moved")


def test_wrong_choice_of_accounts_is_an_error_at_its_field(root, org):
    rows = accounts(org, 1, 2, 3)
    ProviderAccount.objects.filter(pk=rows[1].pk).update(state="DRAFT")
    (theirs,) = accounts(factories.organization("other"), 5)
    form = {"channel": "EMAIL", "do": "PAUSED", "why": "outage"}
    for keys in ([], [theirs.pk], [rows[0].pk, rows[1].pk], ["x"]):
        shown = root.post(url("providers"), {**form, "accounts": keys})
        (states_form,) = [form for *_, form in shown.context["lanes"] if form]
        assert set(states_form.errors) == {"accounts"}
        assert 'value="outage"' in shown.content.decode()
    assert set(ProviderAccount.objects.values_list("state", flat=True)) == {"ACTIVE", "DRAFT"}
    assert (
        "channel has no account"
        in root.post(url("providers"), {**form, "channel": "SMS"}, follow=True).content.decode()
    )


def states():
    rows = ProviderAccount.objects.values_list("name", "state", "state_reason")
    return {name: (state, reason) for name, state, reason in rows}


def test_an_order_is_stored_with_a_reason(root, org):
    rows = accounts(org, 1, 2, 3)
    assert root.post(url("providers"), order(rows, (3, 1, 1))).status_code == 302
    found = dict(ProviderAccount.objects.values_list("name", "priority"))
    assert found == {"a1": 20, "a2": 10, "a3": 10}
    assert [each.name for each in organization_policy.of(org.pk).accounts] == ["a2", "a3", "a1"]
    assert sorted(audited.lines()) == [
        "priority: 1 → 20", "priority: 2 → 10", "priority: 3 → 10",
        "reason: cheaper", "reason: cheaper", "reason: cheaper",
    ]  # fmt: skip


def test_changed_weight_keeps_the_priorities(root, org):
    rows = accounts(org, 1, 2)
    root.post(url("providers"), order(rows, (1, 2), **{f"weight_{rows[0].pk}": 4}))
    found = ProviderAccount.objects.order_by("pk").values_list("priority", "weight")
    assert list(found) == [(1, 4), (2, 1)]
    assert audited.lines() == ["weight: 1 → 4", "reason: cheaper"]


@pytest.mark.parametrize("wrong", [{"why": " "}, {"step_{}": "0"}, {"weight_{}": "x"}])
def test_invalid_order_is_an_error_at_its_field(root, org, wrong):
    rows = accounts(org, 1, 2)
    wrong = {name.format(rows[0].pk): value for name, value in wrong.items()}
    shown = root.post(url("providers"), order(rows, (2, 1), **wrong))
    (form,) = [form for _, form, *_ in shown.context["lanes"] if form]
    assert set(form.errors) == set(wrong)
    assert shown.content.decode().count('role="alert"') == 1
    found = ProviderAccount.objects.order_by("pk").values_list("priority", flat=True)
    assert list(found) == [1, 2]


def test_accounts_of_other_organizations_are_not_reordered(root, org):
    (own,) = accounts(org, 5)
    other = factories.organization("other")
    (theirs,) = accounts(other, 5)
    root.post(url("providers"), {**order([own], (1,)), f"step_{theirs.pk}": 9})
    root.post(url("providers"), order([own], (1,), channel="SMS"))
    assert set(ProviderAccount.objects.values_list("priority", flat=True)) == {5}


def test_account_with_an_open_circuit_is_red_on_its_page_and_in_its_lane(root, org):
    (row,) = accounts(org, 1)
    circuits.report([(row.pk, Misconfigured("key"))])
    problem = "a1 stopped after failures and is being retried."
    page = root.get(url("provider", row.pk))
    assert page.context["state_colour"] == "bad"
    assert f'<div class="c-banner c-bad" role="alert">{problem}' in page.content.decode()
    lane = root.get(url("providers")).content.decode()
    assert '<span class="c-pill c-bad">Failing</span>' in lane
    assert problem in lane
