"""What is sent changes by publishing, at once or at a time, with a second person's consent."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.content import publishing, templates
from messaging.content.tasks import publish_templates
from messaging.models import (
    Delivery,
    Partial,
    SendingRules,
    Suppression,
    Template,
    TemplateVersion,
)
from messaging.policy import organization_policy
from rme.core.db import clock
from rme.core.errors import InvalidPayload
from rme.tenants.audit import COMMAND_LINE
from tests import audited, factories
from tests.messaging.console.studio.scene import at, do, draft_of, save, words
from tests.rest import Api, message

pytestmark = pytest.mark.django_db
OTHER = "review: Someone who didn't write this version must approve it."


@pytest.fixture
def row(org):
    """Return a version that declares its variables: others aren't published in the studio."""
    text = {"type": "string"}
    variables = {"type": "object", "properties": {"note": text, "nota": text}}
    return factories.template(org, name="order", html="<p>{{ note }}</p>", variables=variables)


@pytest.fixture
def reviewed(org):
    SendingRules.objects.create(organization=org, review_templates=True)
    organization_policy.forget(org.pk)


def draft(client, row, **fields):
    save(client, row, **{"subject": "New", **fields})
    return draft_of(row)


def states(row):
    return dict(row.template.versions.order_by("version").values_list("version", "state"))


def test_draft_is_published_and_rolled_back(ann, row):
    new = draft(ann, row, html="<p>{{ nota }}</p>")
    assert words(do(ann, "publish", new)) == ["Version 2 is active."]
    assert states(row) == {1: "ARCHIVED", 2: "ACTIVE"}
    lines = ann.get(at(row)).context["history"]
    assert [(each.row.version, each.began, each.ceased) for each in lines] == [
        (2, ["nota"], []), (1, [], []),  # the plain text of version 2 still has the other one
    ]  # fmt: skip
    assert words(do(ann, "publish", row)) == ["Version 1 is active."]
    assert states(row) == {1: "ACTIVE", 2: "ARCHIVED"}
    told = [name for name, *_ in audited.summaries(action="PUBLISHED")]
    assert told == ["ann", "ann"]


def test_undeclared_variable_stops_publishing(ann, row):
    new = draft(ann, row, html="<p>{{ number }} {{ total }} {{ note }}</p>")
    problem = "variables: number, total isn't declared. Declare it under Variables, then publish."
    assert words(do(ann, "publish", new)) == [problem]
    assert states(row) == {1: "ACTIVE", 2: "DRAFT"}


def test_names_that_a_text_sets_need_no_declaration(ann, row):
    html = "{% assign a = note %}{% for i in nota %}{{ i }}{{ a }}{{ forloop.index }}{% endfor %}"
    assert words(do(ann, "publish", draft(ann, row, html=html))) == ["Version 2 is active."]


@pytest.mark.promise("templates-6")
def test_unparsable_draft_is_not_published_and_says_where(ann, row):
    bad = draft(ann, row, html="<p>\n{{ note")
    assert words(do(ann, "publish", bad)) == ["html: '{{' is never closed"]
    assert states(row) == {1: "ACTIVE", 2: "DRAFT"}


def test_publishing_needs_a_second_person_if_the_rules_require_one(ann, ben, row, reviewed):
    new = draft(ann, row)
    assert words(do(ann, "publish", new)) == [OTHER]
    assert words(do(ann, "publish", new, at="2099-01-01T10:00")) == [OTHER]
    assert words(do(ann, "publish_all", new)) == [OTHER]
    assert states(row) == {1: "ACTIVE", 2: "DRAFT"}
    assert words(do(ann, "request_review", new, publish=False)) == [
        "1 draft is waiting for review. Someone else can approve it."
    ]
    assert words(do(ann, "approve", new)) == [OTHER]
    assert words(do(ben, "approve", new)) == ["1 draft is approved."]
    assert words(do(ann, "publish", new)) == ["Version 2 is active."]  # ben has agreed
    assert audited.summaries(action="APPROVED") == [("ben", "APPROVED", "")]
    assert words(do(ann, "publish", row)) == ["Version 1 is active."]  # it was active before


def test_change_revokes_the_approval_and_adds_an_author(ann, ben, row, reviewed):
    new = draft(ann, row)
    do(ben, "request_review", new, publish=False)
    do(ben, "approve", new)
    save(ben, new, subject="Ben's")
    new = draft_of(row)
    assert (new.approved_by, new.authors) == ("", [ann.user.pk, ben.user.pk])
    assert words(do(ben, "publish", new)) == words(do(ann, "publish", new)) == [OTHER]
    with pytest.raises(InvalidPayload):
        publishing.publish(new, COMMAND_LINE)  # a program reviews nothing


def test_the_drafts_of_all_languages_are_reviewed_and_published_together(ann, ben, row, reviewed):
    new = draft(ann, row)
    do(ann, "another", row, publish=False, to_language="de", to_channel="EMAIL")
    do(ann, "request_review", new, publish=False)
    assert words(do(ben, "approve_and_publish", new)) == ["2 drafts are approved, and active now."]
    found = TemplateVersion.objects.filter(template__name="order", state="ACTIVE")
    assert {each.template.language for each in found} == {"en_US", "de"}


@pytest.mark.parametrize("action", ["approve", "approve_and_publish", "publish_all"])
def test_draft_changed_since_the_page_was_shown_is_not_approved(ann, ben, row, reviewed, action):
    new = draft(ann, row)
    do(ann, "another", row, publish=False, to_language="de", to_channel="EMAIL")
    do(ann, "request_review", new, publish=False)
    page = ben.get(at(row)).content.decode()
    (shown,) = {*re.findall(r'name="drafts" value="([^"]*)"', page)}
    german = TemplateVersion.objects.get(template__language="de")
    save(ann, german, subject="Buy at evil.example")
    do(ann, "request_review", new, publish=False)
    assert words(do(ben, action, new, drafts=shown)) == [
        "ann changed this in the meantime. Nothing was overwritten."
    ]
    assert not TemplateVersion.objects.exclude(approved_by="").exists()
    assert states(row) == {1: "ACTIVE", 2: "DRAFT"}
    assert "2 drafts are" in words(do(ben, action, new))[0]  # with the page of now


def test_publishing_all_is_all_or_nothing(ann, row):
    new = draft(ann, row)
    do(ann, "another", row, publish=False, to_language="de", to_channel="EMAIL")
    german = TemplateVersion.objects.get(template__language="de")
    save(ann, german, html="{% nonsense %}")
    assert words(do(ann, "publish_all", new))[0].startswith("de html: ")
    assert states(row) == {1: "ACTIVE", 2: "DRAFT"}


def order(ann, org, number):
    """Order the publication of a draft of each of several templates for a time that has come."""
    for each in range(number):
        row = factories.template(
            org, name=f"due{each}-{number}", html="{% render 'footer' %}", text=""
        )
        new = draft(ann, row)
        do(ann, "publish", new, at="2099-01-01T10:00")
    due = TemplateVersion.objects.filter(publish_at__isnull=False)
    assert due.count() == number
    due.update(publish_at=clock.now() - timedelta(seconds=1))


def test_versions_are_published_at_their_time_by_a_fixed_number_of_statements(ann, org):
    Partial.objects.create(organization=org, name="footer", text="Yours")
    counts = []
    for number in (1, 3):
        order(ann, org, number)
        with CaptureQueriesContext(connection) as asked:
            publish_templates()
        counts.append(len(asked))
        rows = TemplateVersion.objects.filter(template__name__endswith=f"-{number}", version=2)
        assert set(rows.values_list("state", "publish_at")) == {("ACTIVE", None)}
    assert counts == [12, 12]
    assert {each[:2] for each in audited.summaries(action="PUBLISHED")} == {("ann", "PUBLISHED")}
    publish_templates()  # nothing is left


def test_failed_scheduled_publishing_says_why(ann, org):
    Partial.objects.create(organization=org, name="footer", text="Yours")
    order(ann, org, 1)
    templates.forget_partials(org.pk)
    Partial.objects.all().delete()
    publish_templates()
    new = TemplateVersion.objects.get(version=2)
    assert (new.state, new.publish_at) == ("DRAFT", None)
    assert new.publish_problem.startswith("html, line 1: ")
    assert new.publish_problem in ann.get(at(new)).content.decode().replace("&#x27;", "'")


def test_scheduled_publishing_can_be_cancelled_and_must_be_in_the_future(ann, row):
    new = draft(ann, row)
    assert words(do(ann, "publish", new, at="2001-01-01T10:00")) == ["at: The time has passed."]
    do(ann, "publish", new, at="2099-01-01T10:00")
    assert draft_of(row).publish_by == "ann"
    do(ann, "end_order", new)
    assert draft_of(row).publish_at is None


def test_archived_template_is_not_sent_until_a_version_is_activated(ann, org, row):
    assert words(do(ann, "archive", row)) == [
        "order in English (United States) for email is archived. To bring it back, make a version "
        "active."
    ]
    assert states(row) == {1: "ARCHIVED"}
    assert Template.objects.get(name="order").archived_at is not None
    answer = Api(org).send(message(factories.contact(org), template={"name": "order"}))
    assert "TEMPLATE_NOT_FOUND" in answer.content.decode()
    do(ann, "publish", row)
    assert Template.objects.get(name="order").archived_at is None


def test_test_send_of_a_draft_goes_to_its_authors_contact(ann, org, row):
    new = draft(ann, row, html="<p>Draft {{ note }} for {{ contact.first_name }}</p>")
    factories.contact(org, first_name="Ann", email="ann@example.com")
    sample = {"s:/note": "one"}
    assert words(do(ann, "test", new, publish=False, **sample)) == [
        "Version 2 is on its way to ann@example.com."
    ]
    assert Delivery.objects.get().address == "ann@example.com"
    assert audited.summaries(action="TESTED")[0][0] == "ann"


def test_refused_test_send_says_why(ann, org, row):
    factories.contact(org, first_name="Ann", email="ann@example.com")
    Suppression.objects.create(
        organization=org, channel="EMAIL", address="ann@example.com", reason="STOP"
    )
    assert words(do(ann, "test", row, publish=False)) == ["The recipient is on a suppression list."]
    assert audited.summaries(action="TESTED") == []
