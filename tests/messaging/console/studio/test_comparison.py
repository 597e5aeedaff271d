"""Two versions of a variant are compared field by field."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from messaging.console.studio.comparison import LINES, difference
from messaging.content import templates
from messaging.models import TemplateVersion
from tests import factories
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import at, client_of

pytestmark = pytest.mark.django_db
OLD = {"subject": "Your order", "html": "<p>One</p>\n<p>{{ number }}</p>", "text": "T"}
NEW = {"subject": "Your order", "html": "<p>One</p>\n<p>{{ numbr }}</p>", "text": "T"}


@pytest.fixture
def row(org):
    first = factories.template(org, name="order", **OLD)
    schema = {"properties": {"numbr": {"type": "string"}}}
    templates.add_draft(first.template, {**NEW, "variables": schema})
    return first


@pytest.fixture
def ann(org):
    return client_of(Client, org, "ann")


def compare(client, query=""):
    return client.get(f"{url('template_compare', 'order')}?language=en_US&channel=EMAIL{query}")


def shown(answer):
    return {
        each.name: [(line.kind, line.text) for line in each.lines if line.kind != "place"]
        for each in answer.context["fields"]
    }


def test_newest_version_is_compared_with_the_active_one_by_default(ann, row):
    answer = compare(ann)
    assert answer.context["chosen"] == {"old": 1, "new": 2}
    assert shown(answer) == {
        "html": [
            ("same", " <p>One</p>"),
            ("removed", "-<p>{{ number }}</p>"),
            ("added", "+<p>{{ numbr }}</p>"),
        ],
        "variables": [
            *(("added", line) for line in ("+{", '+  "properties": {', '+    "numbr": {')),
            *(("added", line) for line in ('+      "type": "string"', "+    }", "+  }", "+}")),
        ],
    }
    assert answer.context["same"] == ["Subject", "Plain text"]
    assert not answer.context["can_return"]
    back = compare(ann, "&old=2&new=1")
    assert [kind for kind, _ in shown(back)["html"]] == ["same", "removed", "added"]
    assert ("added", "+<p>{{ number }}</p>") in shown(back)["html"]
    text = answer.content.decode()
    assert "<del>-&lt;p&gt;{{ number }}&lt;/p&gt;</del>" in text  # without scripts
    assert f"{url('template_compare', 'order')}?language=en_US" in ann.get(at(row)).content.decode()


def test_versions_without_a_difference_differ_from_missing_versions(ann, row):
    assert "These are the same version" in compare(ann, "&old=1&new=1").content.decode()
    templates.add_draft(row.template, NEW)
    templates.add_draft(row.template, NEW)
    assert "have the same texts" in compare(ann, "&old=3&new=4").content.decode()
    wrong = compare(ann, "&old=1&new=9")
    assert wrong.context["form"].errors == {"new": ["Version 9 doesn't exist."]}
    assert wrong.context["form"]["old"].value() == "1"
    assert ann.get(url("template_compare", "nothing")).status_code == 404


def test_long_texts_are_left_to_the_script(ann, row):
    TemplateVersion.objects.filter(pk=row.pk).update(html="x\n" * LINES)
    answer = compare(ann)
    assert shown(answer)["html"] == []
    assert "too long to compare without scripts" in answer.content.decode()
    assert len(list(difference("a\n" * (LINES - 1), "a\n" * (LINES - 2)))) > 0


def test_the_page_asks_no_more_for_more_versions(ann, row):
    def count():
        compare(ann)
        with CaptureQueriesContext(connection) as asked:
            assert compare(ann).status_code == 200
        return len(asked)

    before = count()
    for number in range(5):
        templates.add_draft(row.template, {**NEW, "subject": f"{number}"})
    assert (count(), before) == (8, 8)
