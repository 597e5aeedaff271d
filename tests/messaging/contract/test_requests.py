"""The contract's rules for every call: ids, codes, the OpenAPI document, its examples, probes."""

import time
import uuid

import pytest
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from messaging.models import SendingRules
from rme.core import errors
from rme.core.cache import TtlCache
from tests import factories
from tests.messaging.webhooks.webhook_scene import endpoint
from tests.rest import REQUEST_ID, Api, error, message

pytestmark = pytest.mark.django_db

CODES = {
    "INVALID_PAYLOAD": 400,
    "UNAUTHORIZED": 401,
    "NO_CONSENT": 403,
    "SUPPRESSED": 403,
    "FORBIDDEN": 403,
    "FREQUENCY_CAPPED": 403,
    "DUPLICATE_ADDRESS": 409,
    "TEMPLATE_NOT_FOUND": 404,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "NOT_CANCELLABLE": 409,
    "SUPPRESSION_PROTECTED": 409,
    "IDEMPOTENCY_IN_PROGRESS": 409,
    "PAYLOAD_TOO_LARGE": 413,
    "UNSUPPORTED_MEDIA_TYPE": 415,
    "MISDIRECTED": 421,
    "IDEMPOTENCY_KEY_REUSED": 422,
    "UNREACHABLE": 422,
    "RATE_LIMITED": 429,
    "INTERNAL_ERROR": 500,
    "PROVIDER_ERROR": 502,
    "UNAVAILABLE": 503,
}


@pytest.mark.promise("errors-2")
def test_each_code_has_its_status():
    assert {code: kind.status for code, kind in errors.by_code().items()} == CODES


@pytest.mark.promise("calls-9")
@pytest.mark.parametrize("given", ["abc", "", "7b0f9f0e", "x" * 5000])
def test_malformed_request_id_is_replaced(api, given):
    response = api.call("GET", "/messages/none", **{"X-Request-Id": given})
    made = response["X-Request-Id"]
    assert str(uuid.UUID(made)) == made
    assert response.json() == {
        "error": error("NOT_FOUND", "This message doesn't exist.")["error"] | {"requestId": made}
    }


@pytest.mark.promise("calls-8")
def test_a_request_id_is_kept_on_every_answer(api):
    for method, path in (("GET", "/messages"), ("GET", "/nope"), ("PUT", "/messages")):
        assert api.call(method, path)["X-Request-Id"] == REQUEST_ID


@pytest.mark.promise("calls-6", "calls-7")
def test_names_are_read_in_any_case_and_answered_in_upper_case(api, org):
    body = message(
        factories.contact(org),
        channel=None,
        channels=["email", "Sms"],
        category="Transactional",
        strategy="first_reachable",
        schedule={"mode": "local", "time": "09:00"},
    )
    sent = api.send(body).json()
    assert (sent["status"], sent["resolvedChannel"]) == ("SCHEDULED", "EMAIL")
    kept = api.get(sent["messageId"])
    assert (kept["channel"], kept["category"]) == ("EMAIL", "TRANSACTIONAL")
    assert kept["createdAt"].endswith("Z")
    assert kept["scheduledFor"].endswith("Z")


# --- the description ------------------------------------------------------------------------------


@pytest.fixture
def described(db):
    answer = Client().get("/rme/v1/openapi.json")
    assert answer.status_code == 200
    return answer.json()


@pytest.mark.promise("discovery-1", "discovery-5")
def test_the_description_is_openapi_31_and_needs_no_token(described):
    assert described["openapi"].startswith("3.1")
    assert Client().get("/rme/v1/docs").status_code == 200


ALWAYS = {"400", "401", "403", "405", "429", "500", "503"}


@pytest.mark.promise("discovery-3")
@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        (
            "post",
            "/rme/v1/messages",
            {"200", "202", "403", "404", "409", "413", "415", "422", "502"},
        ),
        ("post", "/rme/v1/messages/bulk", {"202", "409", "413", "415", "422"}),
        ("get", "/rme/v1/messages", {"200"}),
        ("get", "/rme/v1/messages/{message_id}", {"200", "404"}),
        ("delete", "/rme/v1/messages/{message_id}", {"200", "404", "409"}),
        ("get", "/rme/v1/health", {"200"}),
    ],
)
def test_the_description_has_every_status(described, method, path, statuses):
    assert set(described["paths"][path][method]["responses"]) == statuses | ALWAYS


def examples(described):
    """Return each request's examples, by the path that accepts it."""
    for path, operations in described["paths"].items():
        content = operations.get("post", {}).get("requestBody", {}).get("content", {})
        for media in content.values():
            name = media["schema"].get("$ref", "").rpartition("/")[2]
            schema = described["components"]["schemas"].get(name, {})
            yield from ((path, example) for example in schema.get("examples", []))


@pytest.mark.promise("discovery-4")
def test_the_examples_of_the_description_work(org, api, described):
    factories.contact(org, pk="01a1fb37-a4a4-7470-9fc2-6927566e64b5")
    for channel in ("EMAIL", "SMS"):
        factories.template(org, channel, name="note")
    found = list(examples(described))
    row = endpoint(org, "https://hooks.example.com/")
    for path, example in found:
        named = path.replace("{name}", "note").replace("{endpoint_id}", str(row.pk))
        answer = api.call("POST", named.removeprefix("/rme/v1"), example)
        assert answer.status_code in (200, 201, 202), (path, answer.json())
    assert "/rme/v1/messages" in [path for path, _ in found]


# --- probes ---------------------------------------------------------------------------------------


def probe(path):
    answer = Client().get(path)
    return answer.status_code, answer.content


@pytest.mark.promise("health-9")
def test_livez_needs_no_query(django_assert_num_queries):
    with django_assert_num_queries(0):
        assert probe("/livez") == (200, b"ok\n")


@pytest.mark.promise("health-10")
def test_readyz_is_ready():
    assert probe("/readyz") == (200, b"ok\n")


@pytest.mark.promise("health-10")
def test_readyz_waits_for_migrations():
    MigrationRecorder.Migration.objects.filter(app="messaging").delete()
    assert probe("/readyz") == (503, b"migrations\n")


@pytest.mark.promise("health-10")
def test_readyz_reports_that_the_database_is_unavailable():
    def away(*_):
        raise OperationalError("server closed the connection unexpectedly")

    with connection.execute_wrapper(away):
        assert probe("/readyz") == (503, b"database\n")
        assert probe("/livez") == (200, b"ok\n")


# --- organizations --------------------------------------------------------------------------------


@pytest.mark.promise("calls-3")
def test_contact_of_another_organization_answers_like_an_unknown_one(api, org):
    theirs = factories.contact(factories.organization("other"))
    answers = []
    for contact_id in (str(theirs.pk), "nobody"):
        body = message() | {"to": [{"contactId": contact_id}]}
        single, listed = api.send(body), api.call("GET", f"/messages?contactId={contact_id}")
        answers.append((single.status_code, single.json(), listed.status_code, listed.json()))
    assert answers[0] == answers[1]
    assert answers[0][0] == 404


@pytest.mark.promise("calls-2", "key-10")
def test_another_organizations_message_is_not_cancelled_nor_repeated(api, org):
    schedule = {"mode": "LOCAL", "time": "09:00"}
    body = message(factories.contact(org), schedule=schedule)
    mine = api.send(body, **{"Idempotency-Key": "k"}).json()["messageId"]
    other = Api(factories.organization("other"))
    assert other.call("DELETE", f"/messages/{mine}").status_code == 404
    answer = other.send(body, **{"Idempotency-Key": "k"})  # the scope is the organization's
    assert (answer.status_code, answer.get("Idempotent-Replayed")) == (404, None)
    assert api.get(mine)["status"] == "SCHEDULED"


@pytest.mark.promise("errors-23", "key-13")
def test_a_reached_ceiling_has_retry_after_and_uses_no_key(api, org, redis):
    SendingRules.objects.create(organization=org, sends_per_day=1)
    TtlCache.clear_all()
    person = factories.contact(org)
    assert api.send(message(person)).status_code == 202
    started = time.monotonic()
    refused = api.send(message(person), **{"Idempotency-Key": "k"})
    assert (refused.status_code, refused.json()) == (
        429,
        error(
            "RATE_LIMITED", "The organization's ceiling of messages is reached; see Retry-After."
        ),
    )
    assert 86_399 - (time.monotonic() - started) <= int(refused["Retry-After"]) <= 86_400
    redis.flushdb()  # as it is a day later
    assert api.send(message(person), **{"Idempotency-Key": "k"}).status_code == 202
