"""A stored secret never leaves for a destination that it was not given for."""

from typing import Any, get_args

import orjson
import pytest
from django.contrib import admin
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from messaging import providers
from messaging.models import ProviderAccount
from rme.core.provider.credentials import REPEATED_VALUE_NEEDED, is_destination, is_secret, types_of
from rme.crm.connectors import REMOTE
from rme.crm.models import Platform
from rme.crm.presets import PRESETS
from rme.tenants.models import Membership
from tests.messaging.console.conftest import url
from tests.tenants.admin.scene import page, person

pytestmark = pytest.mark.django_db

SETTINGS: dict[tuple[type, str], type[BaseModel]] = {
    **{(ProviderAccount, kind): each.Settings for kind, each in providers.REGISTRY.items()},
    **{(Platform, kind): each.Settings for kind, each in REMOTE.items()},
}
DESTINATIONS = {
    (ProviderAccount, "smtp"): {"host", "port", "security", "ca_pem"},
    (ProviderAccount, "anymail"): {"service", "region", "base_url", "ca_pem"},
    (ProviderAccount, "ses"): {"region", "base_url", "sns_url", "ca_pem"},
    (ProviderAccount, "twilio"): {"base_url", "ca_pem"},
    (ProviderAccount, "vonage"): {"base_url", "ca_pem"},
    (ProviderAccount, "kannel"): {"base_url", "ca_pem"},
    (ProviderAccount, "smpp"): {"host", "port", "tls", "ca_pem"},
    (ProviderAccount, "http_sms"): {"url", "ca_pem"},
    (ProviderAccount, "webpush"): {"ca_pem"},
    (ProviderAccount, "apns"): {"production_url", "sandbox_url", "ca_pem"},
    (ProviderAccount, "fcm"): {"base_url", "ca_pem"},
    (ProviderAccount, "salesforce"): {"login_url", "ca_pem"},
    (ProviderAccount, "simulator"): set(),
    (Platform, "salesforce"): {"address", "audience", "ca_pem"},
    (Platform, "odoo"): {"address", "ca_pem"},
}
"""By kind, the settings that decide where an account's secrets go. A new kind must be added."""
ELSEWHERE = {
    "topic_arn",  # whose reports are heard; nothing is sent there but what SNS itself asks for
    "address_range",  # of telephone numbers
    "bounce_address",  # an email address
    "sender_domain",  # a part of the path
    "service_type",  # an SMPP parameter
}
"""Settings whose names look like a destination and are none."""
WORDS = {
    *("url", "host", "address", "port", "domain", "region", "service", "server", "endpoint"),
    *("tls", "security", "ca", "arn", "audience", "proxy"),
}


def secrets_of(settings: type[BaseModel]) -> set[str]:
    return {name for name, info in settings.model_fields.items() if is_secret(info)}


def destinations_of(settings: type[BaseModel]) -> set[str]:
    return {name for name, info in settings.model_fields.items() if is_destination(info)}


def test_every_registered_kind_declares_its_destinations():
    assert {key: destinations_of(each) for key, each in SETTINGS.items()} == DESTINATIONS


@pytest.mark.parametrize(("model", "kind"), sorted(SETTINGS, key=str))
def test_a_setting_named_like_a_destination_is_declared(model, kind):
    """A destination that nobody declared would let a stored secret leave."""
    settings = SETTINGS[model, kind]
    plain = set(settings.model_fields) - secrets_of(settings) - ELSEWHERE
    assert {name for name in plain if WORDS & set(name.split("_"))} == destinations_of(settings)


def other_value(info: FieldInfo) -> str:
    """Return what a person may type that is not the default."""
    for kind in types_of(info.annotation):
        if kind is bool:
            return "on"
        options = [str(each) for each in get_args(kind) or getattr(kind, "__members__", ())]
        if options:
            return next(each for each in options if each != str(info.default))
    return "7777" if int in types_of(info.annotation) else "https://thief.example"


def stored_row(org: Any, model: Any, kind: str) -> tuple[Any, dict[str, str]]:
    """Store a row whose secrets are all set, and return it with the form that changes nothing."""
    settings = SETTINGS[model, kind]
    stored = dict.fromkeys(secrets_of(settings), "kept")
    typed = {
        f"setting_{kind}_{name}": "" if info.default is None else str(info.default)
        for name, info in settings.model_fields.items()
        if name not in stored and not info.is_required() and info.default is not False
        and isinstance(info.default, str | int | float)
    }  # fmt: skip
    row: dict[str, Any] = {"organization": org, "credentials": orjson.dumps(stored).decode()}
    if model is Platform:
        made = Platform.objects.create(**row, kind=kind, mapping=PRESETS[kind].mapping)
        return made, {
            "organization": org.pk,
            "kind": kind,
            "preset": kind,
            "unchecked": "on",
            **typed,
        }
    channel = sorted(providers.REGISTRY[kind].channels)[0]
    made = ProviderAccount.objects.create(**row, name="a", kind=kind, channel=channel)
    return made, {"name": "a", "match": "", "rate": "", **typed}


def form_page(row: Any) -> str:
    """Return the address of the page on which a row's settings are changed."""
    if isinstance(row, Platform):
        return page(Platform, "change", row.pk)
    return url("provider_settings", row.pk)


def errors_of(response: Any) -> dict[str, list[str]]:
    assert response.status_code == 200
    context = response.context
    form = context["adminform"].form if "adminform" in context else context["form"]
    return {name: [*each] for name, each in form.errors.items()}


CHANGES = [
    (model, kind, name)
    for (model, kind), settings in SETTINGS.items()
    for name in sorted(destinations_of(settings))
    if secrets_of(settings)
]


@pytest.mark.parametrize(("model", "kind", "name"), CHANGES)
def test_a_changed_destination_needs_every_secret_again(org, model, kind, name):
    row, form = stored_row(org, model, kind)
    settings = SETTINGS[model, kind]
    owner = person("owner", org, Membership.Role.OWNER)
    changed = {**form, f"setting_{kind}_{name}": other_value(settings.model_fields[name])}
    errors = errors_of(owner.post(form_page(row), changed))
    assert errors == {
        f"setting_{kind}_{each}": [REPEATED_VALUE_NEEDED] for each in secrets_of(settings)
    }
    before = row.credentials
    row.refresh_from_db()
    assert row.credentials == before


def smtp_account(org: Any, **more: Any) -> tuple[ProviderAccount, dict[str, str]]:
    settings = {"host": "mail.example", "port": 587, "username": "u", "password": "kept", **more}
    row = ProviderAccount.objects.create(
        organization=org, name="mail", kind="smtp", channel="EMAIL",
        credentials=orjson.dumps(settings).decode(),
    )  # fmt: skip
    form = {"name": "mail", "match": "", "rate": "",
            "setting_smtp_host": "mail.example", "setting_smtp_port": "587",
            "setting_smtp_security": "STARTTLS", "setting_smtp_username": "u",
            "setting_smtp_password": "", "setting_smtp_timeout": "20",
            "setting_smtp_ca_pem": str(more.get("ca_pem", "")).replace("\n", "\r\n")}  # fmt: skip
    return row, form


def kept(row: ProviderAccount) -> tuple[str, str]:
    row.refresh_from_db()
    settings = orjson.loads(row.credentials)
    return settings["host"], settings["password"]


def test_changed_destination_is_accepted_with_the_secret(org):
    row, form = smtp_account(org)
    owner = person("owner", org, Membership.Role.OWNER)
    moved = {**form, "setting_smtp_host": "new.example", "setting_smtp_password": "typed"}
    assert owner.post(form_page(row), moved).status_code == 302
    assert kept(row) == ("new.example", "typed")


def test_an_unchanged_destination_keeps_the_secret(org):
    """Browsers write line ends of their own, and numbers come back as text."""
    row, form = smtp_account(org, ca_pem="-----BEGIN\nabc\n-----END")
    owner = person("owner", org, Membership.Role.OWNER)
    renamed = {**form, "name": "renamed", "setting_smtp_username": "v"}
    assert owner.post(form_page(row), renamed).status_code == 302
    assert kept(row) == ("mail.example", "kept")


def test_no_list_has_editable_columns(root):

    pages = admin.site._registry.values()
    assert {name for each in pages for name in each.list_editable} == set()
