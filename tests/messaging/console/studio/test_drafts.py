"""A draft is saved while a person types, and no other person's text is overwritten."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from messaging.console.studio import actions
from messaging.content import drafts, publishing, templates
from messaging.models import Template, TemplateVersion
from rme.core.db import clock
from rme.tenants.audit import COMMAND_LINE
from rme.tenants.models import Membership
from tests import audited, factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import at, client_of, do, draft_of, form, save, words

pytestmark = pytest.mark.django_db


def test_new_template_starts_with_an_empty_draft(ann, org):
    new = {"name": "note", "language": "de", "channel": "SMS", "category": "TRANSACTIONAL"}
    answer = ann.post(url("template_new"), new)
    assert answer["Location"] == f"{url('template', 'note')}?language=de&channel=SMS"
    made = Template.objects.get(name="note")
    assert (made.language, made.channel, made.category) == ("de", "SMS", "TRANSACTIONAL")
    assert [(each.version, each.state, each.text) for each in made.versions.all()] == [
        (1, "DRAFT", "")
    ]
    assert ann.post(url("template_new"), new).context["form"].errors == {
        "name": ["note exists already in de for SMS."]
    }
    wrong = {**new, "name": "a b", "language": "xx", "category": "NONE"}
    assert set(ann.post(url("template_new"), wrong).context["form"].errors) == {
        "name", "language", "category",
    }  # fmt: skip


@pytest.mark.parametrize("language", ["xx", "de_ZZ", "qqq", "en_XX"])
def test_new_template_of_an_unknown_language_is_refused(ann, org, language):
    new = {"name": "x", "language": language, "channel": "SMS", "category": "MARKETING"}
    assert set(ann.post(url("template_new"), new).context["form"].errors) == {"language"}


def test_first_change_of_an_active_version_creates_a_draft_and_later_ones_update_it(ann, row):
    made = save(ann, row, subject="New").json()
    assert made == {"version": 2, "revision": 1, "by": "ann"}
    draft = draft_of(row)
    assert (draft.subject, draft.html, draft.state) == ("New", row.html, "DRAFT")
    assert save(ann, draft, subject="Newer").json() == {"version": 2, "revision": 2, "by": "ann"}
    assert draft_of(row).subject == "Newer"
    row.refresh_from_db()
    assert (row.subject, row.state) == (factories.TEXTS["EMAIL"]["subject"], "ACTIVE")
    assert audited.summaries(action="ADDED", kind="messaging.templateversion") == [
        ("ann", "ADDED", "draft")
    ]


def test_changes_of_another_person_are_not_overwritten(ann, ben, row):
    save(ann, row, subject="Ann's")
    seen = draft_of(row)
    save(ben, seen, subject="Ben's")
    answer = save(ann, seen, subject="Ann's again")
    assert (answer.status_code, answer.json()) == (409, {"changed": {"by": "ben", "version": 2}})
    answer = save(ann, row, subject="of the version that is active")
    assert (answer.status_code, answer.json()["changed"]["version"]) == (409, 2)
    assert draft_of(row).subject == "Ben's"
    assert save(ann, seen, subject="Ann's again", anew="1").json()["version"] == 3
    assert draft_of(row).subject == "Ann's again"
    late = do(ann, "publish", seen)
    assert words(late) == ["ben changed this in the meantime. Nothing was overwritten."]
    row.refresh_from_db()
    assert row.state == "ACTIVE"


def test_unchanged_save_keeps_review_and_publishing_time(ann, row):
    save(ann, row, subject="New")
    draft = draft_of(row)
    TemplateVersion.objects.filter(pk=draft.pk).update(
        review_by="ann", approved_by="ben", publish_at=clock.now()
    )
    save(ann, draft)
    assert draft_of(row).approved_by == "ben"
    save(ann, draft, subject="Newer")
    after = draft_of(row)
    assert (after.review_by, after.approved_by, after.publish_at) == ("", "", None)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"subject": "x" * 999}, "subject"),
        ({"subject": "a\0b"}, "subject"),
        ({"rows": "1", "v0_name": "a b"}, "variables.a b"),
        ({"rows": "1", "v0_name": "n", "v0_kind": "integer", "v0_example": "x"}, "variables.n"),
        (
            {"rows": "1", "v0_name": "n", "v0_kind": "integer", "v0_example": "9" * 30},
            "variables.n",
        ),
        ({"rows": "1", "v0_name": "n", "v0_kind": "number", "v0_example": "nan"}, "variables.n"),
        (
            {"rows": "1", "v0_name": "n", "v0_kind": "numbers", "v0_example": "1,1e999"},
            "variables.n",
        ),
        ({"rows": "1", "v0_name": "n", "v0_kind": "choice"}, "variables.n"),
    ],
)
def test_invalid_input_is_named_and_not_saved(ann, row, fields, named):
    answer = save(ann, row, **fields)
    assert answer.status_code == 400
    assert [each["field"] for each in answer.json()["errors"]] == [named]
    assert draft_of(row) == row


def test_form_saves_and_reports_errors_without_a_script(ann, row):
    assert words(do(ann, "save", row, publish=False, subject="New")) == ["Draft 2 is saved."]
    shown = do(ann, "save", draft_of(row), publish=False, subject="x" * 999)
    assert words(shown)[0].startswith("subject: ")
    assert "x" * 999 in shown.content.decode()  # what was typed is not lost


def test_schema_edited_as_rows_keeps_its_hidden_parts(ann, row):
    known = {
        "type": "object",
        "properties": {
            "code": {"type": "string", "description": "The code.", "maxLength": 6},
            "guest": {"type": "object", "properties": {"name": {"type": "string"}}},
        },
        "required": ["code"],
        "$defs": {"x": {}},
    }
    TemplateVersion.objects.filter(pk=row.pk).update(variables=known)
    shown = ann.get(at(row)).context["rows"]
    assert [(each.name, each.kind, each.is_required) for each in shown] == [
        ("code", "text", True), ("guest", "other", False),
    ]  # fmt: skip
    rows = {
        "rows": "1",
        "v0_was": "code",
        "v0_name": "pin",
        "v0_kind": "text",
        "v0_example": "123456",
        "v1_was": "guest",
        "v1_name": "guest",
        "v1_kind": "other",
        "v1_required": "yes",
        "v7_name": "size",
        "v7_kind": "choice",
        "v7_example": "S, M, L",
        "v8_name": "",
        "v8_kind": "text",
    }
    save(ann, row, **rows)
    assert draft_of(row).variables == {
        "$defs": {"x": {}},
        "type": "object",
        "properties": {
            "pin": {
                "type": "string",
                "description": "The code.",
                "maxLength": 6,
                "examples": ["123456"],
            },
            "guest": known["properties"]["guest"],
            "size": {"type": "string", "enum": ["S", "M", "L"]},
        },
        "required": ["guest"],
    }


def test_new_language_copies_the_texts_and_new_channel_does_not(ann, row):
    fields = {"to_language": "de", "to_channel": "EMAIL"}
    assert words(do(ann, "another", row, publish=False, **fields)) == [
        "order in German for email is a draft with the texts of English (United States)."
    ]
    copy = TemplateVersion.objects.get(template__language="de")
    assert (copy.html, copy.state, copy.template.category) == (row.html, "DRAFT", "TRANSACTIONAL")
    assert words(do(ann, "another", row, publish=False, **fields)) == [
        "language: order exists already in de for EMAIL."
    ]
    do(ann, "another", row, publish=False, to_language="de", to_channel="SMS")
    assert TemplateVersion.objects.get(template__channel="SMS", template__name="order").text == ""
    nothing = do(ann, "another", row, publish=False, to_language="xx", to_channel="SMS")
    assert words(nothing)[0].startswith("Language: ")


def test_a_draft_is_deleted_and_an_active_version_never(ann, row):
    save(ann, row, subject="New")
    assert words(do(ann, "discard", draft_of(row), publish=False)) == ["Draft 2 is deleted."]
    assert draft_of(row) == row
    do(ann, "discard", row, publish=False)
    assert draft_of(row) == row


def test_only_a_template_that_was_never_active_is_deleted(ann, org, row):
    save(ann, row, subject="New")
    assert "Delete English (United States), Email" not in ann.get(at(row)).content.decode()
    (refused,) = words(do(ann, "delete", row, publish=False))
    assert refused.startswith("template: A version is or was active, and messages refer to it.")
    do(ann, "another", row, publish=False, to_language="de", to_channel="EMAIL")
    german = TemplateVersion.objects.get(template__language="de")
    assert "Delete German, Email" in ann.get(at(german)).content.decode()
    shown = do(ann, "delete", german, publish=False)
    assert words(shown) == ["order in German for email is deleted."]
    assert shown.redirect_chain == [(at(row), 302)]
    assert Template.objects.filter(name="order").count() == 1
    do(ann, "archive", row)
    do(ann, "delete", row, publish=False)
    assert Template.objects.filter(name="order").count() == 1
    alone = {"name": "note", "language": "de", "channel": "SMS", "category": "TRANSACTIONAL"}
    ann.post(url("template_new"), alone)
    shown = do(ann, "delete", TemplateVersion.objects.get(template__name="note"), publish=False)
    assert shown.redirect_chain == [(url("templates"), 302)]
    assert "name: note → –" in audited.lines(action="DELETED")


@pytest.mark.parametrize("how", ["active", "ordered", "approved", "draft"])
def test_draft_writer_cannot_change_the_category_of_a_live_template(ann, org, how):
    editor = client_of(Client, org, "editor", Membership.Role.TEMPLATE_EDITOR)
    new = Template(
        organization=org, name="news", language="en_US", channel="EMAIL", category="MARKETING"
    )
    version = drafts.add_template(new, COMMAND_LINE, {"subject": "Hi", "text": "x"})
    if how == "active":
        templates.activate(version)
    elif how == "ordered":
        publishing.publish_at(version, COMMAND_LINE, clock.now() + timedelta(days=1))
    elif how == "approved":
        TemplateVersion.objects.filter(pk=version.pk).update(approved_by="boss")

    def change(client):
        told = words(do(client, "category", version, publish=False, to_category="TRANSACTIONAL"))
        new.refresh_from_db()
        return new.category, told

    changed = ("TRANSACTIONAL", ["news in English (United States) for email has a new category."])
    if how == "draft":
        assert change(editor) == changed
        return
    assert change(editor) == ("MARKETING", [f"category: {publishing.COMMITTED}"])
    assert change(ann) == changed
    assert "category: MARKETING → TRANSACTIONAL" in audited.lines(action="CHANGED")


def test_unknown_category_is_refused(ann, row):
    told = words(do(ann, "category", row, publish=False, to_category="NONSENSE"))
    assert [each.partition(":")[0] for each in told] == ["Category"]
    assert Template.objects.get(name="order").category == "TRANSACTIONAL"


def test_editor_of_templates_changes_nothing_live(ann, org, row):
    """Each button of the page is pressed, by the route of writers and by that of publishers."""
    editor = client_of(Client, org, "editor", Membership.Role.TEMPLATE_EDITOR)
    save(editor, row, subject="Buy at evil.example")
    draft = draft_of(row)

    def live():
        templates.forget(row.template)
        found = templates.find_active(org.pk, ["order"])
        return [(each.version, each.category, each.texts["subject"]) for each in found.values()]

    before = live()
    fields = {"to_category": "MARKETING", "to_language": "de", "to_channel": "EMAIL"}
    for action in {**actions.PUBLISHING, **actions.WRITING}:
        for version in (draft, row):
            assert do(editor, action, version, **fields).status_code == 403
            do(editor, action, version, publish=False, **fields)
    assert live() == before


def test_the_list_has_all_variants_and_says_which_lag(ann, org, row):
    factories.template(org, name="order", language="de")
    factories.template(org, name="order", language="en_US", channel="SMS")
    save(ann, row, subject="New", text="", html="<p>Hello</p>")
    do(ann, "publish", draft_of(row))
    found = listed(ann)["order"]
    assert [(each.title, each.active, each.lags) for each in found.variants] == [
        ("English (United States), Email", 2, False),
        ("English (United States), SMS", 1, False),
        ("German, Email", 1, True),
    ]  # fmt: skip
    assert found.states == [("Active", "good"), ("Translation outdated", "warn")]
    assert list(listed(ann, "q=rde")) == ["order"]
    assert list(listed(ann, "after=order")) == ["welcome"]
    for query in ("channel=SMS", "category=TRANSACTIONAL", "channel=FAX&category=NONE"):
        assert "order" in listed(ann, query)
    for query in ("channel=PUSH", "category=MARKETING", "state=archived", "state=review"):
        assert "order" not in listed(ann, query)


def listed(client, query=""):
    """Return the lines of the list of templates by name."""
    return {line.name: line for line in client.get(f"{url('templates')}?{query}").context["lines"]}


def test_list_says_what_is_under_way(ann, org, row):
    factories.template(org, name="order", language="de")
    do(ann, "archive", row)
    assert listed(ann)["order"].states == [("Active", "good")]
    save(ann, row, subject="New")
    assert listed(ann)["order"].states == [("Active", "good"), ("Draft", "info")]
    do(ann, "request_review", draft_of(row), publish=False)
    (line,) = listed(ann, "state=review").values()
    assert (line.name, line.authors) == ("order", "ann")
    assert line.states == [("Active", "good"), ("Waiting for review", "warn")]
    panel = ann.get(url("template_peek", "order")).content.decode()
    for part in (
        "German, Email",
        "Archived",
        "Draft 2",
        "Waiting for review",
        "Version 1 is active",
    ):
        assert part in panel


def test_the_list_and_the_page_ask_no_more_for_more(ann, org, row):
    def count(path):
        ann.get(path)
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert ann.get(path).status_code == 200
        return len(asked)

    save(ann, row, subject="0")
    before = count(url("templates")), count(at(row))
    for number in range(3):
        factories.template(org, name=f"more{number}")
        save(ann, draft_of(row), subject=f"{number}", anew="1")
        factories.template(org, name="order", language=("de", "fr", "it")[number])
    assert (count(url("templates")), count(at(row))) == before == (7, 10)


def test_stranger_and_unknown_template_get_404(org, row, ann):
    other = client_of(Client, factories.organization("other"), "eve")
    for name in ("template", "template_preview", "template_frame", "template_draft"):
        assert other.post(url(name, "order"), form(row)).status_code == 404
        assert ann.post(url(name, "nothing"), form()).status_code == 404
    assert [
        other.get(path).status_code
        for path in (at(row), url("templates"), url("template_peek", "order"))
    ] == [404, 404, 404]
