"""Sending rules and limits of calls: who sets them, and what is refused."""

import pytest

from messaging.models import SendingRules
from messaging.policy import organization_policy
from rme.tenants.models import Membership, Organization
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db

FORM = {"schedule_grace": "3600", "sends_per_day": "1000000", "quiet_hours": "{}"}
QUIET = '{"SMS": {"from": "21:00", "until": "08:00"}}'


def save(client, org, **fields):
    return client.post(page(SendingRules, "add"), {"organization": org.pk, **FORM, **fields})


@pytest.mark.promise("limits-6")
def test_rules_apply_at_once(root, org):
    assert organization_policy.of(org.pk).sending.sends_per_day == 1_000_000
    answer = save(root, org, sends_per_day="5", sends_per_second="2", quiet_hours=QUIET)
    assert answer.status_code == 302
    sending = organization_policy.of(org.pk).sending
    assert (sending.sends_per_day, sending.sends_per_second) == (5, 2)
    assert sending.quiet_hours == {"SMS": {"from": "21:00", "until": "08:00"}}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sends_per_day", "0"),
        ("sends_per_day", ""),
        ("sends_per_second", "0"),
        ("sends_per_second", "-1"),
        ("quiet_hours", "[]x"),
        ("quiet_hours", '["SMS"]'),
        ("quiet_hours", '{"FAX": {"from": "21:00", "until": "08:00"}}'),
        ("quiet_hours", '{"SMS": "21:00"}'),
        ("quiet_hours", '{"SMS": {"from": "21:00"}}'),
        ("quiet_hours", '{"SMS": {"from": "21:00", "until": "24:00"}}'),
        ("quiet_hours", '{"SMS": {"from": "21:00", "until": "08:00\\n"}}'),
        ("quiet_hours", '{"SMS": {"from": "21:00", "until": "21:00"}}'),
        ("quiet_hours", '{"SMS": {"from": 2100, "until": null}}'),
    ],
)
def test_invalid_rules_are_rejected(root, org, field, value):
    answer = save(root, org, **{field: value})
    assert set(answer.context["adminform"].form.errors) == {field}
    assert not SendingRules.objects.exists()


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
