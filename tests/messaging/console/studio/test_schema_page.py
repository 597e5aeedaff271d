"""The variables of a template as JSON Schema."""

import pytest

from messaging.models import TemplateVersion
from rme.core.http.parsing import DEPTH_LIMIT, VALUES_LIMIT
from rme.tenants.models import Membership
from tests.messaging.console.conftest import url
from tests.messaging.console.studio.scene import client_of, draft_of, save

pytestmark = pytest.mark.django_db
BAD = [
    "[" * 100_000,
    '{"a":' * 100_000,
    "1" * 5000,
    "1e999",
    '"\\ud800"',
    "NaN",
    '{"a": "\\u0000"}',
    "[1]",
    "{",
    "[" * (DEPTH_LIMIT + 2) + "]" * (DEPTH_LIMIT + 2),
    f"[{'1,' * VALUES_LIMIT}1]",
]


def post(client, row, schema):
    form = {"language": row.template.language, "channel": row.template.channel, "schema": schema}
    seen = {"version": row.version, "revision": row.revision}
    return client.post(url("template_schema", row.template.name), {**form, **seen})


def test_schema_that_rows_cannot_show_is_saved_as_a_draft(ann, row):
    schema = {"type": "object", "properties": {"guest": {"type": "object"}}, "$defs": {"x": {}}}
    answer = post(ann, row, '{"type": "object", "properties": {"guest": {"type": "object"}},'
                            ' "$defs": {"x": {}}}')  # fmt: skip
    assert answer["Location"].startswith(url("template", "order"))
    draft = draft_of(row)
    assert (draft.version, draft.variables, draft.html) == (2, schema, row.html)
    shown = ann.get(url("template_schema", "order")).content.decode()
    assert "  &quot;$defs&quot;: {\n" in shown
    post(ann, draft, "")
    assert draft_of(row).variables == {}


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:12])
def test_bad_schema_is_refused_at_its_field_and_stays_in_the_form(ann, row, text):
    answer = post(ann, row, text)
    assert set(answer.context["form"].errors) == {"schema"}
    shown = answer.context["form"]["schema"].value()
    assert "".join(shown.split()) == "".join(text.split())
    assert draft_of(row) == row


def test_schema_does_not_overwrite_what_another_person_has_saved(ann, ben, row):
    save(ann, row, subject="Ann's")
    seen = draft_of(row)
    save(ben, seen, subject="Ben's")
    answer = post(ann, seen, '{"type": "object"}')
    (error,) = answer.context["form"].errors["schema"]
    assert error.startswith("ben changed the draft in the meantime. Nothing was overwritten.")
    assert "  &quot;type&quot;: &quot;object&quot;\n" in answer.content.decode()
    assert draft_of(row).variables == {}
    assert (draft_of(row).subject, TemplateVersion.objects.filter(template=row.template).count()) \
        == ("Ben's", 2)  # fmt: skip


def test_reader_sees_the_schema_and_cannot_save_it(org, client, row):
    viewer = client_of(type(client), org, "viewer", Membership.Role.VIEWER)
    shown = viewer.get(url("template_schema", "order"))
    assert (shown.status_code, b"Save draft" in shown.content) == (200, False)
    assert post(viewer, row, "{}").status_code == 403
