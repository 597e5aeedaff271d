"""The pages of keys and of bot settings."""

from datetime import timedelta

import pytest

from bot import actions
from bot.models import BotSettings
from rme.tenants.models import ApiKey, Membership
from rme.tenants.oauth import api_keys
from tests import factories
from tests.bot.conftest import Bot
from tests.tenants.admin.scene import button, page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role


@pytest.fixture
def org(db):
    return factories.organization()


@pytest.fixture
def owner(org):
    return person("owner", org, Role.OWNER)


def shown_key(response):
    """Return the key that a page shows, of which there is one."""
    (text,) = {
        word for word in response.content.decode().replace("<", " ").replace(">", " ").split()
        if word.startswith("rme_") and word.count("_") >= 2 and len(word) > 40
    }  # fmt: skip
    return text


@pytest.mark.promise("keys-1")
def test_key_is_limited_to_chosen_actions_and_networks(org, owner, redis):
    form = owner.get(page(ApiKey, "add")).content.decode()
    assert [f'value="{name}"' in form for name in actions.ALL] == [True] * len(actions.ALL)
    given = {
        "organization": org.pk,
        "name": "Web bot",
        "actions": ["Confirm_Contact"],
        "networks": "127.0.0.0/8\n192.0.2.7, 2001:db8::/32",
    }
    response = owner.post(page(ApiKey, "add"), given, follow=True)
    key = ApiKey.objects.get()
    assert (key.name, key.actions, key.networks) == (
        "Web bot",
        ["Confirm_Contact"],
        ["127.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"],
    )
    bot = Bot(org, shown_key(response), owner)
    assert bot.confirm("Confirm_Contact", email="a@b.example") == []
    assert bot.get("Confirm_Case", email="a@b.example").status_code == 401
    assert response["Cache-Control"].startswith("no-store")
    later = owner.get(page(ApiKey, "change", key.pk)).content.decode()
    assert ("Confirm_Contact" in later, bot.key.split("_", 2)[2] in later) == (True, False)
    assert "127.0.0.0/8\n192.0.2.7/32\n2001:db8::/32</textarea>" in later
    assert bot.key.split("_", 2)[2] not in owner.get(page(ApiKey, "changelist")).content.decode()


@pytest.mark.promise("keys-4")
def test_unknown_action_is_rejected(org, owner):
    given = {"organization": org.pk, "name": "x", "actions": ["Confirm_All"]}
    assert owner.post(page(ApiKey, "add"), given).status_code == 200
    assert not ApiKey.objects.exists()


@pytest.mark.promise("keys-2")
def test_a_key_is_rotated_after_asking(org, owner):
    key, text = api_keys.issue(org, "bot", actions=["Confirm_Case"])
    assert b"7 more days" in owner.get(button(ApiKey, key, "rotate")).content
    assert ApiKey.objects.count() == 1
    response = owner.post(button(ApiKey, key, "rotate"), follow=True)
    assert response["Cache-Control"].startswith("no-store")
    fresh = api_keys.verify(shown_key(response), org.pk)
    assert fresh.actions == ("Confirm_Case",)
    assert api_keys.verify(text, org.pk).id == key.pk
    key.refresh_from_db()
    assert key.expires_at - key.created_at < timedelta(days=7, minutes=1)


@pytest.mark.promise("keys-1")
@pytest.mark.parametrize("role", [Role.OPERATOR, Role.VIEWER, Role.SUPPORT, Role.APPROVER])
def test_only_owners_see_and_rotate_keys(org, role):
    key, _ = api_keys.issue(org, "bot")
    other = person("other", org, role)
    assert other.get(page(ApiKey, "changelist")).status_code == 403
    assert other.post(button(ApiKey, key, "rotate")).status_code in (403, 404)
    assert ApiKey.objects.count() == 1


@pytest.mark.promise("keys-1")
def test_key_of_another_organization_is_not_found(org):
    key, _ = api_keys.issue(org, "bot")
    stranger = person("stranger", factories.organization("other"), Role.OWNER)
    assert stranger.post(button(ApiKey, key, "rotate")).status_code == 404
    assert ApiKey.objects.count() == 1


def test_settings_are_stored_and_applied(org, owner, redis):
    given = {
        "organization": org.pk,
        "max_records": 3,
        "always_200": "on",
        "on_duplicate_contact": "reject",
        "on_duplicate_account": "allow",
    }
    assert owner.post(page(BotSettings, "add"), given).status_code == 302
    row = BotSettings.objects.get()
    assert (row.max_records, row.always_200) == (3, True)
    bot = Bot(org, api_keys.issue(org, "bot")[1], owner)
    assert bot.get("Confirm_Contact").status_code == 200
    viewer = person("viewer", org, Role.VIEWER)
    assert viewer.get(page(BotSettings, "change", org.pk)).status_code == 200
    assert viewer.post(page(BotSettings, "change", org.pk), given).status_code == 403
