"""The list of templates: filters, pages, one statement."""

import base64

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.content import templates
from messaging.models import Template, TemplateVersion
from rme.core.db.clock import iso
from tests import factories
from tests.rest import Api, error

pytestmark = pytest.mark.django_db


def page(api, query=""):
    response = api.call("GET", f"/templates{query}")
    assert response.status_code == 200, response.json()
    return response.json()


def keys(api, query=""):
    return [
        (row["name"], row["language"], row["channel"], row["version"])
        for row in page(api, query)["templates"]
    ]


@pytest.fixture
def filled(org):
    """Make templates beside `welcome`: an archived version, a draft, another language."""
    schema = {"type": "object", "required": ["code"]}
    first = factories.template(org, "SMS", name="code", text="{{ code }}", variables=schema)
    second = templates.add_draft(first.template, {"text": "Code: {{ code }}"})
    templates.activate(second)
    templates.add_draft(first.template, {"text": "draft"})
    factories.template(org, "SMS", name="code", language="de", text="x", category="MARKETING")
    factories.template(factories.organization("other"), "SMS", name="theirs", text="x")
    return first


@pytest.mark.promise("templates-1", "templates-9")
def test_list_of_templates_is_by_name_language_channel_and_version(api, filled):
    filled.refresh_from_db()
    answer = page(api)
    assert answer["nextCursor"] is None
    assert keys(api) == [
        ("code", "de", "SMS", 1),
        ("code", "en_US", "SMS", 1),
        ("code", "en_US", "SMS", 2),
        ("code", "en_US", "SMS", 3),
        ("welcome", "en_US", "EMAIL", 1),
        ("welcome", "en_US", "PUSH", 1),
        ("welcome", "en_US", "SMS", 1),
    ]
    assert answer["templates"][1] == {
        "name": "code",
        "language": "en_US",
        "channel": "SMS",
        "category": "TRANSACTIONAL",
        "status": "ARCHIVED",
        "version": 1,
        "variables": {"type": "object", "required": ["code"]},
        "updatedAt": iso(filled.activated_at),
    }
    draft = TemplateVersion.objects.get(state="DRAFT")
    assert answer["templates"][3]["status"] == "DRAFT"
    assert answer["templates"][3]["updatedAt"] == iso(draft.created_at)


@pytest.mark.promise("templates-9")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?name=code&status=ACTIVE", [("code", "de", "SMS", 1), ("code", "en_US", "SMS", 2)]),
        ("?name=code&language=de", [("code", "de", "SMS", 1)]),
        ("?channel=email", [("welcome", "en_US", "EMAIL", 1)]),
        ("?status=draft", [("code", "en_US", "SMS", 3)]),
        ("?status=Archived&channel=SMS", [("code", "en_US", "SMS", 1)]),
        ("?name=theirs", []),
        ("?name=Code", []),
        ("?name=%25", []),
    ],
)
def test_filters(api, filled, query, expected):
    assert keys(api, query) == expected


@pytest.mark.promise("templates-9")
def test_pages_are_stable_while_versions_change(api, org, filled):
    first = page(api, "?limit=3")
    TemplateVersion.objects.filter(template__name="code", version=2).delete()
    factories.template(org, "SMS", name="a-new-one", text="x")
    second = page(api, f"?limit=3&cursor={first['nextCursor']}")
    third = page(api, f"?limit=3&cursor={second['nextCursor']}")
    found = [*first["templates"], *second["templates"], *third["templates"]]
    assert [(row["name"], row["channel"], row["version"]) for row in found] == [
        ("code", "SMS", 1),
        ("code", "SMS", 1),
        ("code", "SMS", 2),
        ("code", "SMS", 3),
        ("welcome", "EMAIL", 1),
        ("welcome", "PUSH", 1),
        ("welcome", "SMS", 1),
    ]
    assert third["nextCursor"] is None


@pytest.mark.parametrize("count", [1, 30])
def test_statements_do_not_grow_with_the_page(api, org, count):
    Template.objects.all().delete()
    for number in range(count):
        factories.template(org, "SMS", name=f"t{number}", text="x")
    page(api)
    with CaptureQueriesContext(connection) as captured:
        assert len(keys(api)) == count
    assert len(captured) == 1


def cursor(value):
    return base64.urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("limit=²", "limit"),
        ("status=GONE", "status"),
        ("channel=FAX", "channel"),
        ("language=english", "language"),
        ("name=", "name"),
        ("name=%00", "name"),
        ("name=" + "x" * 201, "name"),
        ("cursor=%ff", "cursor"),
        ("cursor=abc", "cursor"),
        (f"cursor={cursor(['a', 'b', 'c'])}", "cursor"),
        (f"cursor={cursor(['a', 'b', 'c', '1'])}", "cursor"),
        (f"cursor={cursor(['a', 'b', 'c', 1 << 40])}", "cursor"),
        (f"cursor={cursor([chr(0), 'b', 'c', 1])}", "cursor"),
        ("names=x", "names"),
    ],
)
def test_bad_filters_are_named(api, query, field):
    response = api.call("GET", f"/templates?{query}")
    assert response.status_code == 400
    assert [d["field"] for d in response.json()["error"]["details"]] == [field]


@pytest.mark.promise("calls-4")
def test_a_stranger_has_no_access(org):
    stranger = Api(factories.organization("other"))
    assert page(stranger) == {"templates": [], "nextCursor": None}
    stranger.token = "wrong"
    response = stranger.call("GET", "/templates")
    assert (response.status_code, response.json()) == (
        401,
        error("UNAUTHORIZED", "The token is unknown or was revoked."),
    )
