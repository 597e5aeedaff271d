"""The description: valid, complete, and true of what the calls do."""

from contextlib import contextmanager

import hypothesis
import pytest
import schemathesis
from django.core import signals
from django.db import close_old_connections
from django.test import Client
from hypothesis import strategies as st

from rme.wsgi import application
from tests import factories
from tests.rest import Api, message

pytestmark = pytest.mark.django_db
EFFORT = hypothesis.settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
)


schemathesis.checks.load_all_checks()

OPERATIONS = [
    ("/rme/v1/consent", "POST"),
    ("/rme/v1/consent", "GET"),
    ("/rme/v1/devices", "POST"),
    ("/rme/v1/devices", "GET"),
    ("/rme/v1/devices/vapid-key", "GET"),
    ("/rme/v1/devices/{device_id}", "DELETE"),
    ("/rme/v1/devices/{device_id}/replace", "POST"),
    ("/rme/v1/health", "GET"),
    ("/rme/v1/messages", "POST"),
    ("/rme/v1/messages", "GET"),
    ("/rme/v1/messages/bulk", "POST"),
    ("/rme/v1/messages/{message_id}", "GET"),
    ("/rme/v1/messages/{message_id}", "DELETE"),
    ("/rme/v1/templates", "GET"),
    ("/rme/v1/templates/{name}/render", "POST"),
    ("/rme/v1/suppressions", "POST"),
    ("/rme/v1/suppressions", "GET"),
    ("/rme/v1/suppressions", "DELETE"),
    ("/rme/v1/suppressions/{suppression_id}", "DELETE"),
]
MODES = [
    (path, method, mode)
    for path, method in OPERATIONS
    for mode in schemathesis.GenerationMode
    # Any text is an id as far as the description goes: nothing is wrong with any. Health and
    # the VAPID key take nothing at all.
    if ("{" not in path and not path.endswith(("/health", "/vapid-key")))
    or mode is schemathesis.GenerationMode.POSITIVE
]
TELLS_OF_EACH = {"/rme/v1/messages/bulk", "/rme/v1/consent"}
"""Takes many at once, and tells of each what is wrong with it."""
UNFIT_CHECKS = [
    # What is allowed may still be refused for what it names: a contact, a template.
    schemathesis.checks.CHECKS.get_one("positive_data_acceptance"),
    # Asserted below: too large a body is refused too, and a bulk tells of each item.
    schemathesis.checks.CHECKS.get_one("negative_data_rejection"),
]


def test_every_operation_is_described(org):
    with one_connection():
        described = schemathesis.openapi.from_wsgi("/rme/v1/openapi.json", application)
    found = {(r.ok().path, r.ok().method.upper()) for r in described.get_all_operations()}
    assert found == set(OPERATIONS)


@contextmanager
def one_connection():
    """Keep the test's transaction: a whole request ends by closing its connection.

    Django's test client lets the signals go and takes them back, so this comes after its use.
    """
    for signal in (signals.request_started, signals.request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (signals.request_started, signals.request_finished):
        signal.connect(close_old_connections)


@pytest.mark.parametrize(("path", "method", "mode"), MODES)
def test_no_call_breaks_its_description(org, path, method, mode):
    api = Api(org)
    with one_connection():
        described = schemathesis.openapi.from_wsgi("/rme/v1/openapi.json", application)
        operation = described[path][method]

        @EFFORT
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def check(case):
            headers = {"Authorization": f"Bearer {api.token}"}
            answer = case.call_and_validate(headers=headers, excluded_checks=UNFIT_CHECKS)
            if mode is schemathesis.GenerationMode.NEGATIVE and path not in TELLS_OF_EACH:
                assert answer.status_code in (400, 413, 415, 422), case.as_curl_command()

        check()


def test_docs_work_offline():
    page = Client().get("/rme/v1/docs")
    assert page.status_code == 200
    for part in page.content.decode().split('"'):
        assert not part.startswith(("http:", "https:", "//")), part
    bundle = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
    assert bundle in page.content.decode()
    assert Client().get(bundle).status_code == 200
    assert b"openapi.json" in Client().get("/rme/v1/docs?script=").content


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
FIELDS = [
    "channel",
    "channels",
    "strategy",
    "fallbackAfter",
    "category",
    "to",
    "template",
    "content",
    "push",
    "context",
    "from",
    "schedule",
    "metadata",
    "idempotencyKey",
    "anything",
]


@EFFORT
@hypothesis.given(name=st.sampled_from(FIELDS), value=JSON)
def test_any_value_in_any_field_is_an_answer_that_names_it(db, name, value):
    org, api = _world()
    body = message(factories.contact(org)) | {name: value}
    response = api.send(body)
    answer = response.json()
    assert response.status_code < 500, answer
    if response.status_code == 400:
        assert answer["error"]["details"], answer
    bulk = api.bulk([body, message(factories.contact(org))])
    assert bulk.status_code == 202
    assert bulk.json()["accepted"] >= 1


def _world():
    from rme.tenants.models import Organization

    found = Organization.objects.filter(pk="acme").first()
    org = found or factories.organization()
    if found is None:
        factories.template(org)
    return org, Api(org)


@EFFORT
@hypothesis.given(body=st.binary(max_size=200))
def test_any_bytes_are_an_answer(db, body):
    _, api = _world()
    for path in ("/messages", "/messages/bulk"):
        assert api.call("POST", path, body).status_code in (400, 202)
