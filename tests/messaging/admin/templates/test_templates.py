"""Versions are checked, made active, and never edited after that."""

import pytest

from messaging.content import previews, samples, templates
from messaging.models import Partial, Template, TemplateVersion
from rme.tenants import organizations
from tests import factories
from tests.tenants.admin.scene import button, page

pytestmark = pytest.mark.django_db

VERSION = {
    "subject": "Hi {{ contact.first_name }}", "text": "", "html": "<p>{{ contact.name }}</p>",
    "mjml": "", "title": "", "body": "", "data": "{}", "image": "", "link": "", "variables": "{}",
    "badge": "",
}  # fmt: skip


def add(root, template):
    response = root.post(page(TemplateVersion, "add"), {"template": template.pk, **VERSION})
    assert response.status_code == 302, response.context["adminform"].form.errors
    return template.versions.order_by("-version")[0]


def test_a_list_of_templates_shows_the_active_version(root, org):
    template = Template.objects.get(channel="EMAIL")
    templates.activate(templates.add_draft(template, {"subject": "S", "text": "T"}))
    Template.objects.create(
        organization=org, name="none", language="de", channel="SMS", category="X"
    )
    rows = root.get(page(Template, "changelist")).context["cl"].result_list
    assert {(row.name, row.channel, row.active) for row in rows} == {
        ("welcome", "EMAIL", 2), ("welcome", "SMS", 1), ("welcome", "PUSH", 1),
        ("none", "SMS", None),
    }  # fmt: skip


def test_a_template_of_an_unknown_category_is_refused(root, org):
    form = {"organization": org.pk, "name": "x", "language": "de", "channel": "SMS"}
    shown = root.post(page(Template, "add"), {**form, "category": "NONSENSE"})
    assert set(shown.context["adminform"].form.errors) == {"category"}


def test_a_new_version_starts_from_the_newest_and_has_its_channels_fields(root, org):
    template = Template.objects.get(channel="SMS")
    opened = root.post(button(Template, template, "new_version"), follow=True)
    form = opened.context["adminform"].form
    assert form.initial["text"] == factories.TEXTS["SMS"]["text"]
    assert set(form.fields) == {"template", "text", "variables"}


def test_new_version_redirects_to_the_studio_and_can_be_activated(root, org):
    template = Template.objects.get(channel="EMAIL")
    made = root.post(
        page(TemplateVersion, "add"), {"template": template.pk, **VERSION, "_save": "Save"}
    )
    assert made["Location"] == (
        "/admin/console/acme/templates/welcome/?language=en_US&channel=EMAIL"
    )
    assert root.get(made["Location"]).context["version"].subject == VERSION["subject"]
    row = template.versions.get(version=2)
    url = button(TemplateVersion, row, "activate")
    assert root.get(url).status_code == 200
    assert template.versions.get(state="ACTIVE").version == 1  # asking does nothing
    root.post(url)
    assert dict(template.versions.values_list("version", "state")) == {1: "ARCHIVED", 2: "ACTIVE"}
    old = template.versions.get(version=1)
    root.post(button(TemplateVersion, old, "activate"))
    assert dict(template.versions.values_list("version", "state")) == {1: "ACTIVE", 2: "ARCHIVED"}


def test_formerly_active_version_is_neither_edited_nor_deleted(root, org):
    template = Template.objects.get(channel="EMAIL")
    old = template.versions.get()
    templates.activate(add(root, template))
    for row in template.versions.all():
        url = page(TemplateVersion, "change", row.pk)
        assert root.post(url, VERSION).status_code == 403
        url = page(TemplateVersion, "delete", row.pk)
        assert root.post(url, {"post": "yes"}).status_code == 403
    shown = root.post(page(Template, "delete", template.pk), {"post": "yes"}).content.decode()
    assert "it has a version that is or was active" in shown
    assert "permission" not in shown
    assert Template.objects.filter(pk=template.pk).exists()
    old.refresh_from_db()
    assert old.subject == factories.TEXTS["EMAIL"]["subject"]


def test_never_active_template_can_be_deleted(root, org):
    template = Template.objects.create(
        organization=org, name="x", language="de", channel="SMS", category="MARKETING"
    )
    templates.add_draft(template, {"text": "Hi"})
    deleted = root.post(page(Template, "delete", template.pk), {"post": "yes"})
    assert deleted.status_code == 302
    assert not Template.objects.filter(pk=template.pk).exists()


@pytest.mark.parametrize("language", ["xx", "de_ZZ", "qqq", "en_XX"])
def test_template_of_an_unknown_language_is_rejected(root, org, language):
    form = {"organization": org.pk, "name": "x", "channel": "SMS", "category": "MARKETING"}
    shown = root.post(page(Template, "add"), {**form, "language": language})
    assert set(shown.context["adminform"].form.errors) == {"language"}


def test_a_draft_is_edited(root, org):
    row = add(root, Template.objects.get(channel="EMAIL"))
    form = {**VERSION, "subject": "Better"}
    assert root.post(page(TemplateVersion, "change", row.pk), form).status_code == 302
    row.refresh_from_db()
    assert row.subject == "Better"


@pytest.mark.promise("templates-6")
def test_broken_version_is_not_activated_and_its_errors_are_shown(root, org):
    template = Template.objects.get(channel="EMAIL")
    row = templates.add_draft(template, {"subject": "{{ x", "text": "{% if %}"})
    answer = root.post(button(TemplateVersion, row, "activate")).content.decode()
    assert "subject: line 1: " in answer
    assert "text: line 1: " in answer
    assert template.versions.get(state="ACTIVE").version == 1
    assert root.get(page(TemplateVersion, "change", row.pk)).status_code == 200


@pytest.mark.parametrize(
    "form", [{"contact": "nobody"}, {"variables": "[1]"}, {"variables": "{"}], ids=str
)
def test_test_send_reports_invalid_fields(root, org, form):
    who = factories.contact(org)
    row = TemplateVersion.objects.get(template__channel="SMS")
    shown = root.post(button(TemplateVersion, row, "send-test"), {"contact": str(who.pk), **form})
    assert set(shown.context["form"].errors) == set(form)


def test_nothing_is_sent_to_a_contact_of_another_organization(root, org):
    who = factories.contact(factories.organization("other"), first_name="Grace")
    row = TemplateVersion.objects.get(template__channel="EMAIL")
    shown = root.post(button(TemplateVersion, row, "send-test"), {"contact": str(who.pk)})
    assert set(shown.context["form"].errors) == {"contact"}
    assert b"Grace" not in shown.content


# --- partials ------------------------------------------------------------------------------------
def using(org):
    """Make a partial, one that uses it, and an active version that uses that."""
    inner = Partial.objects.create(organization=org, name="inner", text="inner")
    outer = Partial.objects.create(organization=org, name="outer", text="{% render 'inner' %}")
    template = Template.objects.get(channel="EMAIL")
    version = templates.add_draft(template, {"text": "x", "html": "{% render 'outer' %}"})
    templates.activate(version)
    return inner, outer, version


def edit(root, row, text):
    shown = root.get(page(Partial, "change", row.pk)).context["adminform"].form.initial
    form = {"text": text, "seen": shown.get("seen", "")}
    return root.post(page(Partial, "change", row.pk), form)


def test_partial_is_used_once_it_is_published(root, org):
    form = {"organization": org.pk, "name": "footer", "text": "© {{ year }}"}
    assert root.post(page(Partial, "add"), form).status_code == 302
    assert templates.partials(org.pk) == {}
    made = Partial.objects.get()
    root.post(button(Partial, made, "versions"), {"seen": "1.1", "do": "publish"})
    row = templates.add_draft(
        Template.objects.get(channel="SMS"), {"text": "Hi {% render 'footer', year: 2026 %}"}
    )
    found = previews.preview_texts(organizations.get(org.pk), row, samples.PERSON, {})
    assert (found.rendered and found.rendered.text) == "Hi © 2026"
    root.post(button(TemplateVersion, row, "activate"))
    assert Template.objects.get(channel="SMS").versions.get(state="ACTIVE").pk == row.pk


def test_version_with_missing_partial_is_not_activated_and_the_error_is_shown(root, org):
    row = templates.add_draft(
        Template.objects.get(channel="SMS"), {"text": "Hi\n{% render 'footer' %}"}
    )
    answer = root.post(button(TemplateVersion, row, "activate")).content.decode()
    assert "text: line 2: there is no partial" in answer
    row.refresh_from_db()
    assert row.state == "DRAFT"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{{ a", "text, line 1: '{{' is never closed"),
        ("<a href={{ a }}>", "text, line 1: a variable stands in a tag, outside of quotes"),
        ("{% render 'nope' %}", "text, line 1: there is no partial 'nope'"),
        ("{% render 'outer' %}", "text, line 1: the partial 'outer' renders itself"),
    ],
)
def test_a_partial_in_use_is_not_broken(root, org, text, problem):
    inner, _, _ = using(org)
    shown = edit(root, inner, text)
    assert shown.status_code == 200
    assert shown.context["adminform"].form.errors["text"][0].startswith(problem)
    inner.refresh_from_db()
    assert inner.text == "inner"


def test_valid_partial_that_breaks_a_text_in_use_is_rejected(root, org):
    for n in range(1, 5):
        text = f"{{% render 'p{n + 1}' %}}" if n < 4 else "x"
        Partial.objects.create(organization=org, name=f"p{n}", text=text)
    inner, _, version = using(org)
    assert edit(root, inner, "{% render 'p2' %}").status_code == 302
    shown = edit(root, inner, "{% render 'p1' %}")
    (problem,) = shown.context["adminform"].form.errors["text"]
    assert problem == f"{version}: html, line 1: partials in partials more than 5 deep"


def test_a_partial_in_use_is_not_deleted(root, org):
    inner, outer, version = using(org)
    for row in (inner, outer):
        shown = root.get(page(Partial, "delete", row.pk)).content.decode()
        assert "there is no partial" in shown
        root.post(page(Partial, "delete", row.pk), {"post": "yes"})
        action = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
        root.post(page(Partial, "changelist"), action)
    assert Partial.objects.count() == 2
    templates.activate(templates.add_draft(version.template, {"text": "without"}))
    for row in (outer, inner):
        response = root.post(page(Partial, "delete", row.pk), {"post": "yes"})
        assert response.status_code == 302
    assert Partial.objects.count() == 0
