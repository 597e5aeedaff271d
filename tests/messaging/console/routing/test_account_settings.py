"""The settings of provider accounts, new and stored: a form for each kind."""

import pytest
from django.db import connection

from messaging.console.routing import provider_kinds
from messaging.models import ProviderAccount
from messaging.policy import organization_policy
from messaging.providers import REGISTRY
from messaging.providers.anymail.services import NEVER, SERVICES
from tests import audited, factories
from tests.fakes.providers import SETTINGS
from tests.fakes.smtp import SmtpServer
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import person

pytestmark = pytest.mark.django_db
SMTP = {
    "name": "mail", "channel": "EMAIL", "setting_smtp_host": "mail.example",
    "setting_smtp_port": "587", "setting_smtp_security": "STARTTLS", "setting_smtp_username": "u",
    "setting_smtp_password": "hunter2-secret", "setting_smtp_timeout": "20",
}  # fmt: skip
STORED = '{"host": "mail.example", "username": "u", "password": "hunter2-secret"}'


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"setting_smtp_port": "0"}, "setting_smtp_port"),
        ({"setting_smtp_host": ""}, "setting_smtp_host"),
        ({"channel": "SMS"}, "channel"),
        ({"name": "taken"}, "name"),
        ({"rate": "0"}, "rate"),
        ({"setting_smtp_security": "NONE"}, "__all__"),  # a log-in in clear
    ],
)
def test_wrong_settings_are_errors_at_their_field(root, org, fields, wrong):
    ProviderAccount.objects.create(organization=org, name="taken", kind="smtp", channel="EMAIL")
    shown = root.post(url("new_provider", "smtp"), {**SMTP, **fields})
    assert set(shown.context["form"].errors) == {wrong}
    assert (b"hunter2" in shown.content, b'value="20"' in shown.content) == (False, True)
    assert ProviderAccount.objects.count() == 1


def test_an_account_is_saved_as_the_last_one_and_not_active(root, org):
    first = ProviderAccount.objects.create(
        organization=org, name="old", kind="simulator", channel="EMAIL", priority=30
    )
    answer = root.post(url("new_provider", "smtp"), {**SMTP, "do": "save"})
    row = ProviderAccount.objects.exclude(pk=first.pk).get()
    assert answer["Location"] == url("provider", row.pk)
    assert (row.state, row.priority, row.checked_at) == ("DRAFT", 40, None)
    assert '"hunter2-secret"' in row.credentials
    assert [each.name for each in organization_policy.of(org.pk).accounts] == ["old"]
    assert [line for line in audited.lines() if "hunter2" in line] == []
    assert "setting_smtp_host:  → mail.example" in "\n".join(audited.lines()).replace("–", "")


@pytest.mark.promise("routes-15")
def test_a_stored_account_keeps_its_password(root, org):
    row = ProviderAccount.objects.create(
        organization=org, name="mail", kind="smtp", channel="EMAIL", priority=7, credentials=STORED
    )
    shown = root.get(url("provider_settings", row.pk)).content
    assert b"mail.example" in shown
    assert b"hunter2" not in shown
    assert b"setting_twilio" not in shown
    form = {**SMTP, "setting_smtp_password": "", "setting_smtp_helo": "o.example", "rate": "5"}
    ProviderAccount.objects.update(state="PAUSED")  # meanwhile
    answer = root.post(url("provider_settings", row.pk), {**form, "channel": "SMS"})
    assert answer["Location"] == url("provider", row.pk)
    row.refresh_from_db()
    assert (row.channel, row.priority, row.state, row.rate) == ("EMAIL", 7, "PAUSED", 5)
    assert '"hunter2-secret"' in row.credentials
    assert "o.example" in row.credentials
    assert organization_policy.of(org.pk).accounts[0].rate == 5
    with connection.cursor() as cursor:
        cursor.execute("SELECT credentials FROM messaging_provideraccount")
        assert "hunter2" not in cursor.fetchone()[0]
    logged = audited.lines()
    assert "setting_smtp_helo: – → o.example" in logged
    assert [line for line in logged if "hunter2" in line] == []


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": "taken"}, "name"),
        ({"rate": "0"}, "rate"),
        ({"match": "a b"}, "match"),
        ({"setting_smtp_port": "0"}, "setting_smtp_port"),
        ({"setting_smtp_host": "other.example", "setting_smtp_password": ""},
         "setting_smtp_password"),
    ],
)  # fmt: skip
def test_wrong_change_is_an_error_at_its_field(root, org, fields, wrong):
    made = {"organization": org, "kind": "smtp", "channel": "EMAIL", "credentials": STORED}
    ProviderAccount.objects.create(**made, name="taken")
    row = ProviderAccount.objects.create(**made, name="mail")
    form = {**SMTP, "setting_smtp_helo": "typed.example", **fields}
    shown = root.post(url("provider_settings", row.pk), form)
    assert set(shown.context["form"].errors) == {wrong}
    assert (b"hunter2" in shown.content, b"typed.example" in shown.content) == (False, True)
    row.refresh_from_db()
    assert (row.name, row.credentials) == ("mail", STORED)


def test_settings_need_the_permission_to_change_them(org):
    row = ProviderAccount.objects.create(
        organization=org, name="mail", kind="smtp", channel="EMAIL", credentials=STORED
    )
    for role in ("OPERATOR", "VIEWER", "DEVELOPER"):
        reader = person(role, org, role)
        shown = reader.get(url("provider", row.pk)).content.decode()
        assert url("provider_settings", row.pk) not in shown
        for call in (reader.get, reader.post):
            assert call(url("provider_settings", row.pk)).status_code == 403
    factories.organization("other")
    owner = person("owner", org, "OWNER")
    assert owner.get(url("provider_settings", row.pk)).status_code == 200
    assert owner.get(url("provider_settings", row.pk, org="other")).status_code == 404


def test_account_of_an_unknown_kind_has_no_settings(root, org):
    row = ProviderAccount.objects.create(
        organization=org, name="old", kind="pigeon", channel="EMAIL", credentials="{}"
    )
    assert "Change settings" not in root.get(url("provider", row.pk)).content.decode()
    assert root.get(url("provider_settings", row.pk)).status_code == 404


@pytest.mark.usefixtures("loopback")
def test_an_account_is_saved_and_checked_at_once(root, org):
    with SmtpServer() as server:
        form = {
            **SMTP, "setting_smtp_host": "127.0.0.1", "setting_smtp_port": server.port,
            "setting_smtp_security": "NONE", "setting_smtp_username": "",
            "setting_smtp_password": "", "do": "check",
        }  # fmt: skip
        shown = root.post(url("new_provider", "smtp"), form, follow=True).content.decode()
        assert ("UTC: works." in shown, server.mails) == (True, [])
    row = ProviderAccount.objects.get()
    assert (row.state, row.check_problem, row.checked_at is None) == ("DRAFT", "", False)


def test_form_has_only_the_fields_of_its_kind(root, org):
    ProviderAccount.objects.create(organization=org, name="twilio", kind="twilio", channel="SMS")
    shown = root.get(url("new_provider", "twilio"))
    fields = shown.context["form"].fields
    assert {each for each in fields if each.startswith("setting_")} == {
        f"setting_twilio_{name}" for name in REGISTRY["twilio"].Settings.model_fields
    }
    status_by = fields["setting_twilio_status_by"]
    assert (status_by.choices, status_by.initial) == (
        [("CALLBACK", "By callback"), ("POLL", "By polling")], "CALLBACK",
    )  # fmt: skip
    assert 'value="twilio-2"' in shown.content.decode()
    assert root.get(url("new_provider", "pigeon")).status_code == 404


def test_form_names_services_without_receipts(root, org):
    silent = [name for name, service in SERVICES.items() if service.check == NEVER]
    assert silent == ["scaleway"]
    shown = root.get(url("new_provider", "scaleway")).content.decode()
    assert "Scaleway sends no delivery receipts" in shown
    shown = root.get(url("new_provider", "sendgrid")).content.decode()
    assert "django-anymail has stopped supporting SendGrid" in shown


def labels(form):
    """Return the labels of a form's settings by their names."""
    prefix = "setting_anymail_"
    return {
        name.removeprefix(prefix): str(field.label)
        for name, field in form.fields.items()
        if name.startswith(prefix) and not field.widget.is_hidden
    }


def test_email_service_has_its_own_fields_under_its_own_names(root, org):
    form = root.get(url("new_provider", "postmark")).context["form"]
    assert labels(form) == {
        "api_key": "Server API token",
        "message_stream": "Message stream",
        "callback_secret": "Webhook credentials (user:password)",
        "base_url": "API URL",
        "ca_pem": "CA certificate (PEM)",
        "timeout": "Timeout (seconds)",
    }
    assert (form["name"].value(), form["setting_anymail_service"].value()) == (
        "postmark", "postmark",
    )  # fmt: skip
    for name in ("scaleway", "unisender_go"):  # they sign nothing that could be checked
        form = root.get(url("new_provider", name)).context["form"]
        assert "callback_secret" not in labels(form)


def test_email_service_is_saved_by_its_form_and_keeps_its_fields(root, org):
    posted = {
        "name": "pm", "channel": "EMAIL", "setting_anymail_service": "postmark",
        "setting_anymail_api_key": "key-secret-1", "setting_anymail_timeout": "20",
    }  # fmt: skip
    assert root.post(url("new_provider", "postmark"), posted).status_code == 302
    row = ProviderAccount.objects.get()
    assert (row.kind, '"service":"postmark"' in row.credentials) == ("anymail", True)
    assert root.get(url("provider", row.pk)).context["about"] == "Postmark · Email"
    form = root.get(url("provider_settings", row.pk)).context["form"]
    assert labels(form)["api_key"] == "Server API token"
    (lane,) = [lane for lane, *_ in root.get(url("providers")).context["lanes"] if lane.cards]
    assert lane.cards[0].kind == "Postmark"


def test_every_email_service_has_a_card(root, org):
    assert set(provider_kinds.SERVICES) == set(SERVICES)
    shown = root.get(url("providers")).content.decode()
    for name in ("postmark", "resend", "sendgrid", "smtp", "twilio"):
        assert f'href="{url("new_provider", name)}"' in shown
    assert url("new_provider", "anymail") not in shown


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_an_sms_account_is_set_up_by_the_form(root, org, kind):
    form = {
        "name": "sms", "channel": "SMS", "match": "+41", "rate": "10",
        **{f"setting_{kind}_{name}": value for name, value in SETTINGS[kind].items()},
        f"setting_{kind}_timeout": "20",
    }  # fmt: skip
    given = REGISTRY[kind].Settings.model_fields
    for name in ("base_url", "url", "parameters_json", "format"):
        if name in given and f"setting_{kind}_{name}" not in form and not given[name].is_required():
            form[f"setting_{kind}_{name}"] = given[name].default
    response = root.post(url("new_provider", kind), form)
    assert response.status_code == 302, response.context["form"].errors
    ProviderAccount.objects.update(state="ACTIVE")
    organization_policy.forget(org.pk)
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


def mail_form(kind, **changes):
    settings = {**MAIL[kind], "timeout": "20", **changes}
    given = {f"setting_{kind}_{name}": value for name, value in settings.items()}
    return {"name": "mail", "channel": "EMAIL", "match": "", "rate": "", **given}


@pytest.mark.parametrize("kind", sorted(MAIL))
def test_a_mail_account_is_set_up_by_the_form_and_shows_no_secret(root, org, kind):
    response = root.post(url("new_provider", kind), mail_form(kind))
    assert response.status_code == 302, response.context["form"].errors
    row = ProviderAccount.objects.get()
    assert organization_policy.account_of(row).provider is not None
    for page in ("provider", "provider_settings"):
        shown = root.get(url(page, row.pk)).content.decode()
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
    response = root.post(url("new_provider", "anymail"), mail_form("anymail", **changes))
    assert response.status_code == 200
    assert expected in response.content
    assert b"key-secret-1" not in response.content
    assert not ProviderAccount.objects.exists()
