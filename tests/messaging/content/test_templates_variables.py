"""The variables of a template: what is accepted, and the errors of what is not."""

import pytest

from messaging.models import Message
from rme.core.errors import InvalidPayload
from tests import factories
from tests.messaging.content.templates_scene import sent_text
from tests.rest import error, message

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(org):
    return factories.contact(org, language="de_CH", zone="Europe/Zurich")


SCHEMA = {
    "type": "object",
    "required": ["code", "order", "tone"],
    "properties": {
        "code": {"type": "string"},
        "order": {"type": "object", "properties": {"total": {"type": "number"}}},
        "tone": {"type": "string", "default": "friendly"},
    },
}
TEXT = "{{ code }} {{ order.total }} {{ tone }}"


def strict(person, **variables):
    return message(person, template={"name": "strict", "language": "en_US"}, context={
        "variables": variables,
    })  # fmt: skip


@pytest.mark.promise("templates-7")
def test_missing_or_mistyped_variables_are_named_at_accept(api, org, ada):
    factories.template(org, name="strict", text=TEXT, variables=SCHEMA)
    missing = api.send(strict(ada, code="A"))
    assert missing.status_code == 400
    place = "context.variables.order"
    assert missing.json() == error(
        "INVALID_PAYLOAD",
        f"{place}: is required by the template",
        (place, "is required by the template"),
    )
    wrong = api.send(strict(ada, code=5, order={"total": "x"}, tone=None))
    assert wrong.json()["error"]["details"] == [
        {"field": "context.variables.code", "message": "must be of type string"},
        {"field": "context.variables.tone", "message": "must be of type string"},
        {"field": "context.variables.order.total", "message": "must be of type number"},
    ]
    assert Message.objects.count() == 0


def test_default_of_the_schema_is_sent_unless_one_is_given(api, org, ada):
    factories.template(org, name="strict", text=TEXT, variables=SCHEMA)
    assert api.send(strict(ada, code="A", order={"total": 1.5})).status_code == 202
    assert sent_text(org) == "A 1.5 friendly"
    body = strict(ada, code="A", order={"total": 1}, tone="stern")
    body["to"][0]["variables"] = {"code": "own"}
    assert api.send(body).status_code == 202
    assert sent_text(org) == "own 1 stern"


def test_version_with_an_invalid_default_is_not_activated(org):
    schema = {"properties": {"n": {"type": "integer", "default": "many"}}}
    with pytest.raises(InvalidPayload) as raised:
        factories.template(org, name="bad", text="x", variables=schema)
    (only,) = raised.value.details
    assert (only.field, only.message) == (
        "variables", "the default of n must be of type integer",
    )  # fmt: skip
