"""Sending rules and limits of calls: who sets them, and what is refused."""

import re

import pytest

from messaging.models import SendingRules
from messaging.policy import organization_policy
from rme.tenants.models import Membership, Organization
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db

FORM = {"schedule_grace": "3600", "sends_per_day": "1000000"}
QUIET = {"quiet_hours_SMS_from": "21:00", "quiet_hours_SMS_until": "08:00"}


def save(client, org, **fields):
    return client.post(page(SendingRules, "add"), {"organization": org.pk, **FORM, **fields})


@pytest.mark.promise("limits-6")
def test_rules_apply_at_once(root, org):
    assert organization_policy.of(org.pk).sending.sends_per_day == 1_000_000
    answer = save(root, org, sends_per_day="5", sends_per_second="2", **QUIET)
    assert answer.status_code == 302
    sending = organization_policy.of(org.pk).sending
    assert (sending.sends_per_day, sending.sends_per_second) == (5, 2)
    assert sending.quiet_hours == {"SMS": {"from": "21:00", "until": "08:00"}}


def test_durations_have_units(root, org):
    save(root, org, schedule_grace="90", schedule_grace_unit="60")
    assert SendingRules.objects.get().schedule_grace == 5400
    shown = root.get(page(SendingRules, "change", org.pk)).content.decode()
    assert re.search(r'name="schedule_grace" value="90"', shown)  # minutes: 1.5 hours aren't whole
    assert '<option value="60" selected>minutes</option>' in shown
    refused = save(root, org, schedule_grace="-1", schedule_grace_unit="60")
    assert set(refused.context["adminform"].form.errors) >= {"schedule_grace"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sends_per_day", "0"),
        ("sends_per_day", ""),
        ("sends_per_second", "0"),
        ("sends_per_second", "-1"),
    ],
)
def test_invalid_rules_are_rejected(root, org, field, value):
    answer = save(root, org, **{field: value})
    assert set(answer.context["adminform"].form.errors) == {field}
    assert not SendingRules.objects.exists()


@pytest.mark.parametrize(
    ("start", "end"),
    [("21:00", ""), ("", "08:00"), ("21:00", "21:00"), ("21:00", "24:00"), ("21:00", "08:00\n")],
)
def test_quiet_hours_need_two_different_times(root, org, start, end):
    times = {"quiet_hours_SMS_from": start, "quiet_hours_SMS_until": end}
    answer = save(root, org, **times)
    assert set(answer.context["adminform"].form.errors) == {"quiet_hours"}
    assert f'value="{start}"' in answer.content.decode()  # what was typed stays
    assert not SendingRules.objects.exists()


def test_stored_quiet_hours_are_shown_and_kept(root, org):
    save(root, org, **QUIET)
    shown = root.get(page(SendingRules, "change", org.pk)).content.decode()
    assert 'name="quiet_hours_SMS_from" value="21:00"' in shown
    assert "<textarea" not in shown
    root.post(page(SendingRules, "change", org.pk), {**FORM, "sends_per_day": "7"})
    assert SendingRules.objects.get().sends_per_day == 7


@pytest.mark.parametrize(("role", "status"), [("OWNER", 302), ("OPERATOR", 403), ("VIEWER", 403)])
def test_only_owners_set_rules(org, role, status):
    assert save(person("p", org, role), org).status_code == status


@pytest.mark.promise("limits-6")
def test_owner_cannot_raise_the_call_limits(root, org):
    owner = person("o", org, Membership.Role.OWNER)
    form = {
        "name": "Acme", "zone": "UTC", "language": "en_US", "region": "US",
        "brand_color": "#112233", "calls_per_second": "5", "calls_per_day": "6", "is_active": "on",
        "memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0",
    }  # fmt: skip
    url = page(Organization, "change", org.pk)
    for client, limits in ((owner, (100, 1_000_000)), (root, (5, 6))):
        assert client.post(url, form).status_code == 302
        org.refresh_from_db()
        assert (org.brand_color, org.calls_per_second, org.calls_per_day) == ("#112233", *limits)
