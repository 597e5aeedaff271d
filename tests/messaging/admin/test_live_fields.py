"""What acts on live mail at once needs the right of the table, on every page of the admin."""

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib import admin
from django.test import RequestFactory

from messaging.admin.live_fields import DRAFTED, FIELD_RIGHTS, MODEL_RIGHTS
from messaging.content import publishing, templates
from messaging.models import Partial, Template, TemplateVersion
from rme.tenants import audit
from rme.tenants.access.roles import Permission
from rme.tenants.admin.base import DeploymentAdmin, TenantAdmin
from rme.tenants.models import Membership, User
from tests import factories
from tests.tenants.admin.scene import button, page, person

pytestmark = pytest.mark.django_db
Role = Membership.Role
FORM = {"category": "TRANSACTIONAL", "versions-TOTAL_FORMS": 0, "versions-INITIAL_FORMS": 0}


@pytest.fixture
def editor(org):
    return person("editor", org, Role.TEMPLATE_EDITOR)


@pytest.fixture
def operator(org):
    return person("operator", org, Role.OPERATOR)


def changeable(request):
    """Return the fields of all forms that anybody but a superuser can change, by model."""
    fields_by_model = {}
    for model, model_admin in admin.site._registry.items():
        if not isinstance(model_admin, TenantAdmin) or isinstance(model_admin, DeploymentAdmin):
            continue
        if not (
            model_admin.has_add_permission(request) or model_admin.has_change_permission(request)
        ):
            continue
        shown = model_admin.get_form(request).base_fields
        fields = set(shown) - set(model_admin.get_readonly_fields(request))
        if fields:
            fields_by_model[model._meta.label] = (model_admin, fields)
    return fields_by_model


def test_every_form_is_in_the_table_with_the_permission_of_its_page(org):
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("root")
    pages = changeable(request)
    assert {label: each.write_permission for label, (each, _) in pages.items()} == MODEL_RIGHTS
    fields = {f"{label}.{name}" for label, (_, names) in pages.items() for name in names}
    assert FIELD_RIGHTS.keys() - fields == set()


def test_template_texts_change_as_drafts_or_by_publishers(org):
    """No text of a template or partial, of any model, is live by CHANGE_TEMPLATES alone."""
    request = RequestFactory().get("/")
    request.user = User.objects.create_superuser("root")
    weak = {
        f"{label}.{name}"
        for label, (_, names) in changeable(request).items()
        for name in names
        if MODEL_RIGHTS[label] is Permission.CHANGE_TEMPLATES and label not in DRAFTED
    }
    assert weak - FIELD_RIGHTS.keys() == {
        # fixed once the row is there, and nothing refers to a new row
        *(f"messaging.Template.{name}" for name in ("organization", "name", "language", "channel")),
    }
    for label, (each, _) in changeable(request).items():
        if label == "messaging.Template":
            fixed = {name for name in weak if name.startswith(label)} - FIELD_RIGHTS.keys()
            assert fixed == {f"{label}.{name}" for name in each.fixed_fields}


def test_draft_writer_changes_only_the_draft_of_a_partial(org, editor):
    row = Partial.objects.create(organization=org, name="footer", text="Yours, Acme")
    factories.template(org, name="news", text="Hi {% render 'footer' %}")
    form = {"organization": org.pk, "name": "footer", "text": "Buy at evil.example"}
    deleted = [
        editor.post(page(Partial, "delete", row.pk), {"post": "yes"}),
        editor.post(
            page(Partial, "changelist"),
            {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"},
        ),
    ]
    assert deleted[0].status_code == 403
    assert editor.post(page(Partial, "change", row.pk), form).status_code == 302
    (draft,) = row.versions.filter(state="DRAFT")
    acts = {"seen": f"{draft.version}.{draft.revision}"}
    for do in ("publish", "approve"):
        assert editor.post(button(Partial, row, "versions"), {**acts, "do": do}).status_code == 403
    row.refresh_from_db()
    draft.refresh_from_db()
    assert (row.text, draft.state, draft.text) == ("Yours, Acme", "DRAFT", "Buy at evil.example")


@pytest.mark.parametrize("how", ["active", "ordered", "approved", "draft"])
def test_draft_writer_cannot_change_the_category_of_a_live_template(org, editor, operator, how):
    made = Template.objects.create(
        organization=org, name="news", language="en_US", channel="EMAIL", category="MARKETING"
    )
    version = templates.add_draft(made, {"subject": "Hi", "text": "x"})
    if how == "active":
        templates.activate(version)
    elif how == "ordered":
        publishing.publish_at(version, audit.COMMAND_LINE, datetime.now(UTC) + timedelta(days=1))
    elif how == "approved":
        TemplateVersion.objects.filter(pk=version.pk).update(approved_by="boss")
    answer = editor.post(page(Template, "change", made.pk), FORM)
    made.refresh_from_db()
    if how == "draft":
        assert (answer.status_code, made.category) == (302, "TRANSACTIONAL")
        return
    assert set(answer.context["adminform"].form.errors) == {"category"}
    assert made.category == "MARKETING"
    assert operator.post(page(Template, "change", made.pk), FORM).status_code == 302
    made.refresh_from_db()
    assert made.category == "TRANSACTIONAL"


def test_draft_changed_on_its_page_loses_its_review_and_its_time(org, editor):
    made = Template.objects.create(
        organization=org, name="news", language="en_US", channel="EMAIL", category="MARKETING"
    )
    version = templates.add_draft(made, {"subject": "Hi", "text": "x"})
    at = datetime.now(UTC) + timedelta(days=1)
    TemplateVersion.objects.filter(pk=version.pk).update(
        approved_by="boss", review_by="editor", publish_at=at, publish_by="boss", publish_by_id=1
    )
    texts = {"subject": "Buy", "text": "x", "html": "", "mjml": "", "variables": "{}"}
    assert editor.post(page(TemplateVersion, "change", version.pk), texts).status_code == 302
    version.refresh_from_db()
    user = User.objects.get(username="editor")
    assert (version.subject, version.revision, version.authors) == ("Buy", 2, [user.pk])
    assert (version.approved_by, version.review_by, version.publish_at) == ("", "", None)
    added = {"template": made.pk, **texts}
    assert editor.post(page(TemplateVersion, "add"), added).status_code == 302
    assert made.versions.get(version=2).authors == [user.pk]  # so the author can't approve it
