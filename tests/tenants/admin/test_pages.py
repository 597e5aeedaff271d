"""Every page opens, shows no secret, and asks the database as often for 30 rows as for 3."""

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.models import (
    Category,
    Message,
    Pause,
    SendingRules,
)
from push.models import Device
from rme.crm.models import Account, Case, Event, EventRegistration, Exhibitor, Speaker
from rme.tenants.models import ApiKey, Application, Membership, Organization, User
from tests import factories
from tests.tenants.admin.scene import FORMED, LISTED, MODELS, NOW, PASSWORD, page

pytestmark = pytest.mark.django_db

NEVER_ADDED = {Message, LogEntry}
ELSEWHERE = {User, Membership} | ({*MODELS} - {*FORMED, Message})
"""They are invited, or added in the console: to add one leads there."""


def test_every_model_has_a_page():
    assert {model._meta.label for model in MODELS} == {
        "admin.LogEntry", "auth.Group", "bot.BotSettings",
        "crm.Account", "crm.Case", "crm.Contact", "crm.Event",
        "crm.EventRegistration", "crm.Exhibitor", "crm.Platform", "crm.Speaker",
        "messaging.Category",
        "messaging.ConsentEntry", "messaging.Message",
        "messaging.Partial", "messaging.Pause",
        "messaging.ProviderAccount", "messaging.SenderDomain", "messaging.SendingRules",
        "messaging.Suppression", "messaging.WebhookEndpoint",
        "messaging.Template", "messaging.TemplateVersion", "push.Device", "tenants.ApiKey",
        "tenants.Application", "tenants.Invitation", "tenants.Membership",
        "tenants.Organization", "tenants.User",
    }  # fmt: skip


@pytest.mark.xdist_group("pages-filled")  # one worker fills it once
class TestFilled:
    """Tests that look at one filled organization, each in a savepoint of its own."""

    @pytest.mark.promise("routes-15")
    @pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
    def test_every_page_opens_and_holds_no_secret(self, root, filled, model):
        root.post(page(Category, "add"), {"organization": filled.pk, "name": "X"})
        if model is LogEntry:
            row = LogEntry.objects.create(
                user_id=root.session["_auth_user_id"],
                action_flag=2,
                object_repr="x",
                change_message='[{"values": {"name": ["Ada", "Grace"]}}]',
            )
        row = model._default_manager.first()
        assert row is not None
        assert root.get(page(model, "add")).status_code == (
            403 if model in NEVER_ADDED else 302 if model in ELSEWHERE else 200
        )
        secrets = [
            PASSWORD,
            "simulator-delivered",
            *ApiKey.objects.values_list("digest", flat=True),
        ]
        secrets += Application.objects.values_list("client_secret", flat=True)
        in_console = [] if model in LISTED else [page(model, "changelist")]
        if model not in FORMED:
            in_console += [page(model, name, row.pk) for name in ("change", "delete")]
        for url in (
            page(model, "changelist"),
            page(model, "changelist") + "?q=a",
            page(model, "change", row.pk),
            page(model, "history", row.pk),
            *([] if model is LogEntry else [page(model, "delete", row.pk)]),
        ):
            shown = root.get(url)
            expected = 302 if url.partition("?")[0] in in_console else 200
            assert (url, shown.status_code) == (url, expected)
            assert [secret for secret in secrets if secret in shown.content.decode()] == []

    @pytest.mark.parametrize(
        "lookup",
        ["messaging/provideraccount/?credentials__contains=a", "push/device/?token__startswith=s",
         "messaging/webhookendpoint/?secret__startswith=h",
         "tenants/apikey/?digest__startswith=a", "tenants/application/?client_secret__contains=a"],
    )  # fmt: skip
    def test_no_list_can_be_filtered_by_a_secret(self, root, filled, lookup):
        assert root.get(f"/admin/{lookup}").status_code in (302, 400)


def _people(org, count):
    return factories.contacts(org, count)


def _events(org, count):
    return Event.objects.bulk_create(
        Event(organization=org, name=f"Event {i}", starts_at=NOW) for i in range(count)
    )


def _cases(org, count):
    start = Case.objects.count()
    for i, who in enumerate(_people(org, count), start):
        Case.objects.create(organization=org, number=str(i), subject="S", issue="I", contact=who)


def _at_events(model):
    def make(org, count):
        for event, who in zip(_events(org, count), _people(org, count), strict=True):
            if model is EventRegistration:
                model.objects.create(organization=org, event=event, contact=who, name="A")
            else:
                model.objects.create(organization=org, event=event, contact=who)

    return make


def _named(model, **fields):
    def make(org, count):
        start = model.objects.count()
        for i in range(start, start + count):
            named = {key: value.format(i) for key, value in fields.items()}
            model.objects.create(organization=org, **named)

    return make


def _rules(org, count):
    start = SendingRules.objects.count()
    for i in range(start, start + count):
        SendingRules.objects.create(organization=factories.organization(f"ruled{i}"))


LISTS = [
    (Account, _named(Account, name="Account {}"), 6),
    (Case, _cases, 7),
    (Event, _events, 6),
    (EventRegistration, _at_events(EventRegistration), 7),
    (Speaker, _at_events(Speaker), 7),
    (Exhibitor, _at_events(Exhibitor), 8),
    (Device, _named(Device, contact_id="c{}", token="t{}", token_digest="d{}"), 6),
    (Category, _named(Category, name="C{}"), 6),
    (Pause, _named(Pause, reason="because {}"), 6),
    (SendingRules, _rules, 6),
]


@pytest.mark.parametrize(
    ("model", "make", "queries"), LISTS, ids=[model._meta.label for model, *_ in LISTS]
)
def test_a_list_asks_no_more_for_more_rows(root, org, model, make, queries):
    root.get(page(model, "changelist"))
    found = []
    for more in (3, 30):
        make(org, more)
        with CaptureQueriesContext(connection) as captured:
            assert root.get(page(model, "changelist")).status_code == 200
        found.append(len(captured))
    assert found == [queries, queries]


def test_id_of_deleted_organization_is_not_given_again(root, org):
    form = {"name": "n", "zone": "UTC", "language": "en_US", "region": "US", "is_active": "on"}
    form |= {"brand_color": "#1f4e79", "calls_per_second": "1", "calls_per_day": "1", "id": "old"}
    add = page(Organization, "add")
    assert root.post(add, form).status_code == 302
    assert root.post(page(Organization, "delete", "old"), {"post": "yes"}).status_code == 302
    assert root.post(add, form).context["adminform"].form.errors == {
        "id": [
            "A deleted organization had this id, and its records may still be stored. "
            "Choose another id."
        ]
    }
    assert root.post(add, {**form, "id": "other"}).status_code == 302
    assert set(Organization.objects.values_list("pk", flat=True)) == {org.pk, "other"}
