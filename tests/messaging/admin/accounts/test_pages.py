"""A provider account's page: its last hour, its callbacks, and why it is set aside."""

import pytest

from messaging.delivery.accounts import CircuitState
from messaging.models import Attempt, ProviderAccount
from messaging.policy import organization_policy
from messaging.providers import REGISTRY
from messaging.providers.anymail.services import NEVER, SERVICES
from messaging.reports import account_hour
from tests import audited, factories
from tests.admin.scene import button, page
from tests.fakes.providers import SETTINGS
from tests.rest import Api, message, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def account(org):
    return ProviderAccount.objects.create(
        organization=org, name="sim", kind="simulator", channel="EMAIL"
    )


def test_the_last_hour_is_a_table(root, org, account):
    api = Api(org)
    for address in ("ada", "bob", "reject"):
        person = factories.contact(org, email=f"{address}@simulator.rme.test")
        api.send(message(person))
    work()
    shown = root.get(page(ProviderAccount, "change", account.pk)).content.decode()
    assert "<p>Circuit: closed, it sends</p>" in shown
    assert "<tr><td>2</td><td>Accepted</td><td></td>" in shown
    assert "<tr><td>1</td><td>Rejected</td><td>simulated: refused</td>" in shown


def test_the_callback_url_of_a_provider_is_shown(root, org, account, settings):
    settings.BASE_URL = "https://rme.example"
    shown = root.get(page(ProviderAccount, "change", account.pk)).content.decode()
    assert f"https://rme.example/hooks/{account.public_id}" in shown


def test_the_form_names_services_that_send_no_receipts(root):
    shown = root.get(page(ProviderAccount, "add")).content.decode()
    silent = [name for name, service in SERVICES.items() if service.check == NEVER]
    assert silent == ["scaleway"]
    assert f"{silent[0]} sends no receipts" in shown
    assert "sendgrid: its support" in shown


def test_twilio_is_called_unless_it_is_to_be_asked(root):
    shown = root.get(page(ProviderAccount, "add"))
    field = shown.context["adminform"].form.fields["setting_twilio_status_by"]
    assert (field.choices, field.initial) == (
        [("CALLBACK", "CALLBACK"), ("POLL", "POLL")],
        "CALLBACK",
    )


def test_the_list_tells_each_accounts_last_hour(root, org, account):
    other = ProviderAccount.objects.create(
        organization=org, name="idle", kind="simulator", channel="SMS"
    )
    api = Api(org)
    for address in ("ada", "reject", "unknown"):
        api.send(message(factories.contact(org, email=f"{address}@simulator.rme.test")))
    work()
    Attempt.objects.update(latency_ms=7)
    shown = account_hour.read_summaries([account, other])
    assert shown == {
        account.pk: account_hour.AccountSummary(CircuitState.CLOSED, 3, 1, 1, 7),
        other.pk: account_hour.AccountSummary(CircuitState.CLOSED),
    }
    text = root.get(page(ProviderAccount, "changelist")).content.decode()
    assert "3 sent: 1 accepted, 1 failed, p95 7 ms" in text
    assert "nothing sent" in text
    assert account_hour.read_summaries([]) == {}


@pytest.mark.parametrize("count", [1, 4])
def test_the_list_asks_once_for_all_accounts(root, org, count, django_assert_num_queries):
    rows = [
        ProviderAccount.objects.create(
            organization=org, name=f"a{number}", kind="simulator", channel="EMAIL"
        )
        for number in range(count)
    ]
    with django_assert_num_queries(1):
        assert len(account_hour.read_summaries(rows)) == count


def test_an_account_is_set_aside_with_a_reason(root, org, account):
    url = button(ProviderAccount, account, "set-aside")
    place = {"priority": 100, "weight": 1}
    assert root.get(url).status_code == 200
    assert b"Give a reason." in root.post(url, {"state": "DRAINING", "reason": "", **place}).content
    answer = root.post(url, {"state": "DRAINING", "reason": "moved", **place}).content
    assert b"sim is DRAINING." in answer
    account.refresh_from_db()
    assert (account.state, account.state_reason) == ("DRAINING", "moved")
    kept = organization_policy.of(org.pk).accounts[0]
    assert (kept.active, kept.draining) == (False, True)
    root.post(url, {"state": "ACTIVE", "reason": "back", **place})
    account.refresh_from_db()
    assert (account.state, account.state_reason) == ("ACTIVE", "")
    logged = ["state: ACTIVE → DRAINING", "reason: moved", "state: DRAINING → ACTIVE"]
    assert audited.lines() == logged


def test_an_account_is_reordered_with_a_reason(root, org, account):
    url = button(ProviderAccount, account, "set-aside")
    moved = {"state": "ACTIVE", "priority": 5, "weight": 3}
    assert b"Give a reason." in root.post(url, moved).content
    account.refresh_from_db()
    assert (account.priority, account.weight) == (100, 1)
    root.post(url, {**moved, "reason": "cheaper"})
    account.refresh_from_db()
    assert (account.priority, account.weight, account.state) == (5, 3, "ACTIVE")
    assert organization_policy.of(org.pk).accounts[0].priority == 5
    expected = ["priority: 100 → 5", "weight: 1 → 3", "reason: cheaper"]
    assert audited.lines() == expected


@pytest.mark.parametrize("wrong", [{"priority": -1}, {"weight": 0}, {"priority": "x" * 9}])
def test_a_place_that_is_none_is_refused(root, org, account, wrong):
    url = button(ProviderAccount, account, "set-aside")
    form = {"state": "ACTIVE", "priority": 5, "weight": 3, "reason": "r", **wrong}
    assert root.post(url, form).status_code == 200
    account.refresh_from_db()
    assert (account.priority, account.weight) == (100, 1)


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_an_sms_account_is_set_up_by_the_form(root, org, kind):
    form = {
        "organization": org.pk, "name": "sms", "kind": kind, "channel": "SMS", "priority": 1,
        "weight": 1, "match": "+41", "rate": "10", "state": "ACTIVE",
        **{f"setting_{kind}_{name}": value for name, value in SETTINGS[kind].items()},
        f"setting_{kind}_timeout": "20",
    }  # fmt: skip
    given = REGISTRY[kind].Settings.model_fields
    for name in ("base_url", "url", "parameters_json", "format"):
        if name in given and f"setting_{kind}_{name}" not in form and not given[name].is_required():
            form[f"setting_{kind}_{name}"] = given[name].default
    response = root.post(page(ProviderAccount, "add"), form)
    assert response.status_code == 302, response.context["adminform"].form.errors
    (made,) = organization_policy.of(org.pk).accounts
    assert (made.active, made.rate, made.match) == (True, 10, ("+41",))


MAIL = {
    "anymail": {
        "service": "mailgun",
        "api_key": "key-secret-1",
        "sender_domain": "mg.acme.example",
        "callback_secret": "signing-secret-2",
    },
    "ses": {
        "region": "eu-west-1",
        "access_key_id": "AKIDEXAMPLEEXAMPLE00",
        "secret_access_key": "key-secret-1",
        "topic_arn": "arn:aws:sns:eu-west-1:123456789012:rme",
    },
}


def mail_form(org, kind, **changes):
    settings = {**MAIL[kind], "timeout": "20", **changes}
    return {
        "organization": org.pk, "name": "mail", "kind": kind, "channel": "EMAIL", "priority": 1,
        "weight": 1, "match": "", "rate": "", "state": "ACTIVE",
        **{f"setting_{kind}_{name}": value for name, value in settings.items()},
    }  # fmt: skip


@pytest.mark.parametrize("kind", sorted(MAIL))
def test_a_mail_account_is_set_up_by_the_form_and_shows_no_secret(root, org, kind):
    response = root.post(page(ProviderAccount, "add"), mail_form(org, kind))
    assert response.status_code == 302, response.context["adminform"].form.errors
    (made,) = organization_policy.of(org.pk).accounts
    assert made.active
    shown = root.get(page(ProviderAccount, "change", made.id)).content.decode()
    assert not [word for word in ("key-secret-1", "signing-secret-2") if word in shown]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sender_domain": "", "subaccount": "7"}, b"mailgun has no subaccount"),
        ({"service": "mailjet", "sender_domain": ""}, b"mailjet needs secret_key"),
        ({"service": "pigeon"}, b"Select a valid choice"),
        ({"base_url": "file:///etc/passwd"}, b"should match pattern"),
    ],
)
def test_missing_settings_of_a_service_are_errors_in_the_form(root, org, changes, expected):
    response = root.post(page(ProviderAccount, "add"), mail_form(org, "anymail", **changes))
    assert response.status_code == 200
    assert expected in response.content
    assert b"key-secret-1" not in response.content
    assert not ProviderAccount.objects.exists()


def test_the_list_pauses_with_a_reason(root, org, account):
    url, chosen = page(ProviderAccount, "changelist"), {"action": "pause"}
    chosen["_selected_action"] = [account.pk]
    for more in ({}, {"reason": " "}):
        shown = root.post(url, {**chosen, **more})
        assert account.name in shown.content.decode()
        account.refresh_from_db()
        assert (account.state, account.state_reason) == ("ACTIVE", "")
    root.post(url, {**chosen, "reason": "maintenance"})
    account.refresh_from_db()
    assert (account.state, account.state_reason) == ("PAUSED", "maintenance")
