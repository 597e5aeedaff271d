"""An address of the admin asks for nothing but what the page offers."""

import re

import pytest
from django.contrib import admin
from django.db.models import ForeignKey

from messaging.models import Category, Message, TemplateVersion
from rme.core import ids
from rme.crm.models import Account, Case, Event
from rme.tenants.admin.base import TenantAdmin
from rme.tenants.admin.lists import declared_lookups
from rme.tenants.models import ApiKey, Application, Membership, Organization, User
from tests import factories
from tests.rest import Api, message
from tests.tenants.admin.scene import LISTED, MODELS, fill, page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role
LOOKUPS = ("", "__exact", "__startswith", "__contains", "__regex", "__gt", "__isnull", "__in")

ORGANIZATION = {"organization"}
STATUS = {"status", "status__isnull"}


def choices(*fields):
    """Return the lookups of filters by fields with choices."""
    return {f"{field}__{lookup}" for field in fields for lookup in ("exact", "isnull")}


DECLARED = {
    "admin.LogEntry": choices("action_flag"),
    "auth.Group": set(),
    "crm.Case": ORGANIZATION | choices("status") | {"priority", "priority__isnull"},
    "crm.Event": ORGANIZATION | {"starts_at__gte", "starts_at__lt"},
    "crm.EventRegistration": ORGANIZATION | STATUS | choices("attended"),
    "crm.Exhibitor": ORGANIZATION | STATUS | {"level", "level__isnull"},
    "crm.Speaker": ORGANIZATION | STATUS,
    "messaging.Category": ORGANIZATION | choices("on_unknown", "regime"),
    "messaging.Pause": ORGANIZATION | choices("channel"),
    "push.Device": ORGANIZATION | choices("active", "environment", "platform"),
    "tenants.Application": ORGANIZATION | choices("mode"),
    "tenants.Invitation": ORGANIZATION | choices("role"),
    "tenants.Membership": ORGANIZATION | choices("role"),
    "tenants.Organization": choices("is_active"),
    "tenants.User": {
        *choices("is_staff", "is_superuser", "is_active"), "groups__id__exact", "groups__isnull",
    },
}  # fmt: skip
"""The lookups of each list that has others than the organization."""


def request_of(rf, client):
    request = rf.get("/")
    request.user = User.objects.get(pk=client.session["_auth_user_id"])
    return request


def columns_of(model):
    """Return every path that a lookup may begin with: columns, keys and what relations reach."""
    fields = model._meta.get_fields()
    paths = {field.name for field in fields} | {getattr(f, "attname", f.name) for f in fields}
    for field in fields:
        if field.is_relation and field.related_model:
            paths |= {f"{field.name}__{far.name}" for far in field.related_model._meta.get_fields()}
    return {*paths, "pk", "metadata__note", "nothing"}


def test_every_page_is_a_tenants():
    assert [m for m in MODELS if not isinstance(admin.site.get_model_admin(m), TenantAdmin)] == []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_only_declared_lookups_filter_a_list(root, rf, model):
    here, request = admin.site.get_model_admin(model), request_of(rf, root)
    asked = {f"{path}{lookup}" for path in columns_of(model) for lookup in LOOKUPS}
    allowed = {each for each in asked if here.lookup_allowed(each, "a", request)}
    declared = declared_lookups(here, request)
    assert allowed == asked & declared
    assert declared == DECLARED.get(model._meta.label, ORGANIZATION)


@pytest.mark.xdist_group("lookups-filled")  # one worker fills it once
class TestFilled:
    """Tests that look at one filled organization, each in a savepoint of its own."""

    @pytest.mark.parametrize("model", LISTED, ids=lambda model: model._meta.label)
    def test_an_undeclared_lookup_is_refused(self, root, filled, model):
        for lookup in ("pk__gt=0", "id__regex=.", "organization__name__startswith=A", "nothing=1"):
            assert root.get(f"{page(model, 'changelist')}?{lookup}").status_code == 400

    @pytest.mark.parametrize("model", LISTED, ids=lambda model: model._meta.label)
    def test_every_declared_lookup_is_served(self, root, rf, filled, model):
        lookups = declared_lookups(admin.site.get_model_admin(model), request_of(rf, root))

        def asked(*chosen, value):
            query = "&".join(f"{lookup}={value}" for lookup in chosen)
            return chosen, value, root.get(f"{page(model, 'changelist')}?{query}").status_code

        for value in ("1", "0", "2026-01-01", "junk"):
            if asked(*lookups, value=value)[2] == 200:
                continue  # each was applied; where one redirects, the others are not
            for lookup in lookups:
                assert asked(lookup, value=value) in [
                    ((lookup,), value, expected) for expected in (200, 302)
                ]
        refused = [asked(lookup, value="%00") for lookup in lookups]
        assert refused == [((lookup,), "%00", 400) for lookup in lookups]

    @pytest.mark.parametrize("field", ["name", "regime", "organization", "cap_count", "nothing"])
    def test_popup_refers_to_rows_only_by_their_key(self, root, filled, field):
        assert root.get(f"{page(Category, 'changelist')}?_to_field={field}").status_code == 400
        assert root.get(f"{page(Category, 'changelist')}?_to_field=id").status_code == 200


@pytest.mark.parametrize(
    "lookup",
    ["metadata__note__startswith=x", "metadata__contains=x", "metadata__has_key=x",
     "metadata=x", "template__startswith=x", "language=x", "organization__name__startswith=x",
     "organization_id__startswith=x", "id__lt=0"],
)  # fmt: skip
def test_support_reads_no_content_by_a_lookup(org, lookup):
    api = Api(org)
    api.send({**message(factories.contact(org)), "metadata": {"note": "secret"}})
    support = person("support", org, Role.SUPPORT)
    shown = support.get(f"/admin/console/{org.pk}/messages/?{lookup}").content.decode()
    assert str(Message.objects.get().pk) in shown  # as without it


@pytest.mark.parametrize("word", ["secret", "hello", "note", "Northwind", "welcome"])
def test_support_finds_no_message_by_its_content(org, word):
    api = Api(org)
    api.send({**message(factories.contact(org)), "metadata": {"note": "secret"}})
    support = person("support", org, Role.SUPPORT)
    row = Message.objects.get()
    by_word = support.get("/admin/console/search/", {"q": word})
    assert by_word.status_code == 200
    assert str(row.pk) not in by_word.content.decode()
    by_id = support.get("/admin/console/search/", {"q": str(row.pk)})
    assert by_id["Location"] == f"/admin/console/{org.pk}/messages/{row.pk}/"


def test_support_has_no_autocomplete(org):
    """Every field of every model is asked for: what a choice offers may be a content."""
    fill(org)
    support = person("support", org, Role.SUPPORT)
    answers = {
        support.get(
            "/admin/autocomplete/",
            {"app_label": model._meta.app_label, "model_name": model._meta.model_name,
             "field_name": field.name, "term": "a"},
        ).status_code
        for model in MODELS for field in model._meta.get_fields()
    }  # fmt: skip
    assert answers <= {403, 404}


def ids_of(client, url):
    main = client.get(url).content.decode().partition("<main")[2]
    return re.findall(r"/([\w-]+)/change/", main)


def test_list_is_ordered_only_by_sortable_columns(root, org):
    first, last = (
        Event.objects.create(organization=org, name=name, starts_at="2026-01-01T00:00Z")
        for name in ("B", "A")
    )
    url = page(Event, "changelist")
    newest_first = [str(last.pk), str(first.pk)]
    by_name = sorted((last, first), key=lambda each: each.name, reverse=True)
    assert list(dict.fromkeys(ids_of(root, url))) == newest_first
    assert list(dict.fromkeys(ids_of(root, f"{url}?o=-1"))) == [str(each.pk) for each in by_name]
    for hostile in ("99", "-99", "name", "-organization__name", "1.99", "a.b", ""):
        assert root.get(f"{url}?o={hostile}").status_code == 200


# --- what the address of a form begins with -------------------------------------------------------


def first_key(model, org):
    """Return the key of a row of an organization."""
    own = {Organization: "pk", TemplateVersion: "template__organization_id"}
    path = own.get(model, "organization_id" if hasattr(model, "organization_id") else "")
    rows = model._default_manager.all()
    if path:
        rows = rows.filter(**{path: org.pk})
    elif model is User:
        rows = rows.filter(memberships__organization=org)
    found = rows.order_by("pk").first()
    assert found is not None, model
    return str(found.pk)


def unknown_key(model):
    """Return a key that no row has."""
    kind = model._meta.pk.get_internal_type()
    return {"UUIDField": ids.new_text_id(), "CharField": "no-such-one"}.get(kind, "987654321")


FOREIGN = [
    (model, field)
    for model in MODELS
    for field in model._meta.concrete_fields
    if isinstance(field, ForeignKey) and field.related_model._meta.app_label != "contenttypes"
]


UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
CHANGING = rf"{UUID}|0x[0-9a-f]+|[A-Za-z0-9]{{40}}|\d\d(:\d\d){{2}}"


def body(response, *keys):
    """Return a page without what differs each time: ids that are made, tokens, addresses."""
    # Not the digits of something else. `cols="40"` is a key too where a row has that number.
    named = rf'(?<=[="/])({"|".join(map(re.escape, keys))})(?=["&/])'
    text = re.sub(named, "KEY", response.content.decode())
    return re.sub(rf'(csrfmiddlewaretoken" value|nonce)="[^"]*"|{CHANGING}', "", text)


@pytest.mark.xdist_group("lookups-two-filled")  # one worker fills it once
class TestTwoFilled:
    """Tests that look at two filled organizations, each in a savepoint of its own."""

    @pytest.mark.parametrize(("model", "field"), FOREIGN, ids=str)
    def test_form_does_not_reveal_rows_of_another_organization(
        self, filled, elsewhere, model, field
    ):
        owner, url = person("owner", filled, Role.OWNER), page(model, "add")
        theirs, none = first_key(field.related_model, elsewhere), unknown_key(field.related_model)
        for name in (field.name, field.attname, f"{field.name}__id"):
            shown = owner.get(url, {name: theirs})
            missing = owner.get(url, {name: none})
            assert shown.status_code == missing.status_code
            assert body(shown, theirs, none) == body(missing, theirs, none)


@pytest.mark.parametrize("model", dict.fromkeys(model for model, _ in FOREIGN), ids=str)
def test_form_accepts_any_value_in_its_query(root, org, model):
    names = [field.name for each, field in FOREIGN if each is model]
    assert names
    assert {Application, ApiKey} <= {model for model, _ in FOREIGN}

    def answer(value, *fields):
        query = "&".join(f"{name}={value}" for name in (*fields, "copy"))
        return value, fields, root.get(f"{page(model, 'add')}?{query}").status_code

    for value in ("x", "-1", "%00", "9" * 30, "9" * 5000, "1.5", "١", ""):
        if answer(value, *names)[2] == 200:
            continue  # each was taken; where one refuses the person, the others are not looked at
        for name in names:
            # by an invitation, and in the console
            leads = model is Membership or model not in {*LISTED, Message}
            expected = [302] if leads else [200, 403]
            assert answer(value, name) in [(value, (name,), each) for each in expected]


def test_form_preselects_a_row_of_the_organization(org):
    account = Account.objects.create(organization=org, name="Northwind")
    shown = person("owner", org, Role.OWNER).get(page(Case, "add"), {"account": account.pk})
    assert f'<option value="{account.pk}" selected' in shown.content.decode()


def initial_organization(client):
    return client.get(page(Account, "add")).context["adminform"].form.initial.get("organization")


def test_form_preselects_the_organization_used_last(root, org):
    other = factories.organization("other")
    assert initial_organization(root) is None
    root.post(page(Account, "add"), {"organization": other.pk, "name": "L"})
    assert initial_organization(root) == other.pk
    root.get(f"/admin/console/{org.pk}/messages/")
    assert initial_organization(root) == org.pk


def test_form_does_not_preselect_an_inaccessible_organization(org):
    owner = person("owner", org, Role.OWNER)
    for name in ("b", "c"):
        Membership.objects.create(user_id=owner.session["_auth_user_id"], role=Role.OWNER,
                                  organization=factories.organization(name))  # fmt: skip
    owner.get(f"/admin/console/{org.pk}/messages/")
    assert initial_organization(owner) == org.pk
    Membership.objects.filter(organization=org).delete()
    assert initial_organization(owner) is None
