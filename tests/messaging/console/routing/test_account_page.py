"""A provider account's page: its last hour, its callbacks, its activation, and setting it aside."""

import re

import pytest

from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from rme.tenants.models import User
from tests import audited, factories
from tests.fakes.smtp import SmtpServer
from tests.messaging.console.conftest import url
from tests.messaging.console.routing.test_connection_check import account as smtp_account
from tests.rest import Api, message, work
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def account(org):
    return ProviderAccount.objects.create(
        organization=org, name="sim", kind="simulator", channel="EMAIL"
    )


def do(client, row, **given):
    """Press a button of the account's page, and return the page that follows."""
    shown = client.post(url("provider", row.pk), given, follow=True)
    row.refresh_from_db()
    return shown.content.decode()


def test_the_last_hour_is_a_table(root, org, account, django_assert_num_queries):
    api = Api(org)
    for address in ("ada", "bob", "reject"):
        api.send(message(factories.contact(org, email=f"{address}@simulator.rme.test")))
    work()
    root.get(url("provider", account.pk))
    with django_assert_num_queries(9):
        shown = root.get(url("provider", account.pk)).content.decode()
    assert "3 sent: 2 accepted, 0 failed" in shown
    rows = [" ".join(each.split()) for each in shown.split("<tr>")]
    assert any(
        'data-label="Sends">2</td>' in each and ">The provider accepted it<" in each
        for each in rows
    )
    assert any(
        'data-label="Sends">1</td>' in each and "simulated: refused" in each for each in rows
    )


@pytest.mark.parametrize("kind", ["twilio", "simulator"])
def test_callback_address_is_shown_where_the_provider_calls(root, account, settings, kind):
    settings.BASE_URL = "https://rme.example"
    ProviderAccount.objects.filter(pk=account.pk).update(kind=kind)
    shown = root.get(url("provider", account.pk)).content.decode()
    calls = kind == "twilio"
    assert (f">https://rme.example/hooks/{account.public_id}</code>" in shown) is calls
    assert ("This provider makes no callbacks" in shown) is not calls


def test_owner_with_an_email_address_tests_with_one_button(root, org, account):
    shown = root.get(url("provider", account.pk)).content.decode()
    assert "Send test to me" not in shown
    User.objects.update(email="root@acme.example")
    shown = root.get(url("provider", account.pk)).content.decode()
    assert shown.count('name="to" value="root@acme.example"') == 2  # the button, and the dialog
    ProviderAccount.objects.update(channel="SMS")
    assert "Send test to me" not in root.get(url("provider", account.pk)).content.decode()


def test_forms_are_in_dialogs_until_they_have_errors(root, account):
    def opened(page):
        return re.findall(r'<dialog id="(\w+)"[^>]* open', page)

    assert opened(root.get(url("provider", account.pk)).content.decode()) == []
    assert opened(do(root, account, do="pause", why="")) == ["aside"]
    assert opened(do(root, account, do="test", to="nobody")) == ["test"]


def test_a_test_shows_the_outcome(root, account):
    assert "The provider accepted it" in do(root, account, do="test", to="ada@example.com")
    assert "Refused for now" in do(root, account, do="test", to="down@simulator.rme.test")
    shown = do(root, account, do="test", to="nobody")
    assert "This isn&#x27;t an email address." in shown
    assert 'value="nobody"' in shown


@pytest.mark.usefixtures("loopback")
def test_unchecked_account_asks_for_confirmation_before_activation(root, org):
    with SmtpServer() as server:
        row = smtp_account(org, server.port, state="DRAFT")
        assert organization_policy.of(org.pk).accounts == ()
        shown = do(root, row, do="activate")
        assert "No check of mail has succeeded yet." in shown
        assert (row.state, "Activate anyway" in shown) == ("DRAFT", True)
        do(root, row, do="check")
        assert "mail is active" in do(root, row, do="activate")
    assert row.state == "ACTIVE"
    assert [each.name for each in organization_policy.of(org.pk).accounts] == ["mail"]
    assert audited.lines()[-1] == "state: DRAFT → ACTIVE"


def test_unchecked_account_is_activated_after_confirmation(root, org):
    row = smtp_account(org, 1, state="DRAFT", check_problem="refused")
    do(root, row, do="activate", sure="yes")
    assert row.state == "ACTIVE"


def test_account_is_drained_and_paused_with_a_reason(root, org, account):
    assert "Give a reason." in do(root, account, do="drain", why=" ")
    assert "sim is draining." in do(root, account, do="drain", why="moved")
    assert (account.state, account.state_reason) == ("DRAINING", "moved")
    kept = organization_policy.of(org.pk).accounts[0]
    assert (kept.active, kept.draining) == (False, True)
    do(root, account, do="activate")
    assert (account.state, account.state_reason) == ("ACTIVE", "")
    logged = ["state: ACTIVE → DRAINING", "reason: moved", "state: DRAINING → ACTIVE"]
    assert audited.lines() == logged


def test_draft_account_cannot_be_paused(root, account):
    ProviderAccount.objects.update(state="DRAFT")
    assert "it sends nothing" in do(root, account, do="pause", why="no")
    assert account.state == "DRAFT"
    assert "Choose one of the buttons" in do(root, account, do="explode")


def test_account_is_deleted_after_confirmation(root, org, account):
    assert "Choose one of the buttons" in do(root, account, do="delete")
    shown = root.post(url("provider", account.pk), {"do": "delete", "sure": "yes"}, follow=True)
    assert shown.redirect_chain == [(url("providers"), 302)]
    assert organization_policy.of(org.pk).accounts == ()
    logged = audited.lines()
    assert ("name: sim → –" in logged, "credentials: … → –" in logged) == (True, True)
    viewer = person("viewer", org, "VIEWER")
    row = smtp_account(org, 1)
    assert viewer.post(url("provider", row.pk), {"do": "delete", "sure": "yes"}).status_code == 403
    assert ProviderAccount.objects.get() == row
