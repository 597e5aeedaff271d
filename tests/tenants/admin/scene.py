"""A filled organization, people to look at it, and addresses of pages."""

from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.test import Client
from django.urls import reverse

from bot.models import BotSettings
from messaging.admin.console_lists import InConsole
from messaging.consent import ledger
from messaging.models import (
    Category,
    Partial,
    Pause,
    ProviderAccount,
    SendingRules,
    Suppression,
    WebhookEndpoint,
)
from rme.crm.models import Account, Case, Event, EventRegistration, Exhibitor, Platform, Speaker
from rme.crm.presets import PRESETS
from rme.tenants.access import invitations
from rme.tenants.models import Invitation, Membership, User
from rme.tenants.oauth import api_keys
from tests import factories
from tests.rest import Api, message, work

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PASSWORD = "hunter2-secret"
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
LISTED = [each for each in MODELS if not hasattr(admin.site._registry[each], "console_list")]
"""The models whose lists are pages of the admin."""
FORMED = [each for each in MODELS if not isinstance(admin.site._registry[each], InConsole)]
"""The models whose forms are pages of the admin."""


def person(name: str, org: Any = None, role: Any = None, **fields: Any) -> Client:
    """Log somebody in, with a role in an organization."""
    user = User.objects.create_user(name, password="pw", is_staff=True, **fields)
    if org:
        Membership.objects.create(user=user, organization=org, role=role)
    client = Client()
    client.force_login(user)
    return client


def page(model: Any, name: str, *args: Any) -> str:
    """Return the URL of a model's page."""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{name}", args=args)


def button(model: Any, row: Any, name: str) -> str:
    """Return the URL of a button on a row's page."""
    return page(model, "change", row.pk).replace("/change/", f"/{name}/")


def fill(org: Any) -> Api:
    """Make a row of every model that has a page, and send a message."""
    ada = factories.contact(org)
    account = Account.objects.create(organization=org, name="Northwind")
    Case.objects.create(organization=org, number="1", subject="S", issue="I", contact=ada)
    event = Event.objects.create(organization=org, name="Congress", starts_at=NOW)
    EventRegistration.objects.create(organization=org, event=event, name="Ada", email="a@b.example")
    Speaker.objects.create(organization=org, event=event, contact=ada)
    Exhibitor.objects.create(organization=org, event=event, account=account)
    factories.device(org, ada)
    Category.objects.create(organization=org, name="NEWS")
    Partial.objects.create(organization=org, name="footer", text="Yours, {{ org.name }}")
    SendingRules.objects.create(organization=org)
    Pause.objects.create(organization=org, reason="maintenance", channel="SMS")
    credentials = f'{{"host": "mail.example", "username": "u", "password": "{PASSWORD}"}}'
    ProviderAccount.objects.create(
        organization=org, name="mail", kind="smtp", channel="EMAIL", credentials=credentials
    )
    WebhookEndpoint.objects.create(
        organization=org, url="https://hooks.example.com/", types=["message.*"], secret=PASSWORD
    )
    Suppression.objects.create(
        organization=org, channel="EMAIL", address="x@y.example", reason="STOP"
    )
    decision = ledger.ConsentDecision(str(ada.pk), "ALL", "ALL", "OPTED_IN", "API", NOW)
    ledger.record(org.pk, [decision])
    api_keys.issue(org, "bot")
    secret = f'{{"address": "https://odoo.example", "api_key": "{PASSWORD}"}}'
    Platform.objects.create(
        organization=org, kind="odoo", credentials=secret, mapping=PRESETS["odoo"].mapping
    )
    BotSettings.objects.create(organization=org)
    invitations.create(Invitation(organization=org, email="new@person.example", role="VIEWER"))
    Membership.objects.create(
        user=User.objects.create(username=f"member-{org.pk}"), organization=org, role="VIEWER"
    )
    api = Api(org, mode="TEST")
    api.send(message(ada))
    work()
    return api
