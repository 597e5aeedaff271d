"""The OpenAPI document: valid, complete, and true of what the calls do."""

import re
from contextlib import contextmanager
from functools import cache

import hypothesis
import orjson
import pytest
import schemathesis
from django.core import signals
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import Client
from hypothesis import strategies as st
from schemathesis.config import _checks as checks

from tests import factories
from tests.any_value import EFFORT
from tests.rest import Api

pytestmark = pytest.mark.django_db


schemathesis.checks.load_all_checks()
INVALID = "INVALID_PAYLOAD"

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
    ("/rme/v1/suppressions/{suppression_id}", "GET"),
    ("/rme/v1/suppressions/{suppression_id}", "DELETE"),
    ("/rme/v1/webhook-endpoints", "GET"),
    ("/rme/v1/webhook-endpoints", "POST"),
    ("/rme/v1/webhook-endpoints/{endpoint_id}", "GET"),
    ("/rme/v1/webhook-endpoints/{endpoint_id}", "PATCH"),
    ("/rme/v1/webhook-endpoints/{endpoint_id}", "DELETE"),
    ("/rme/v1/webhook-endpoints/{endpoint_id}/rotate-secret", "POST"),
    ("/rme/v1/webhook-endpoints/{endpoint_id}/test", "POST"),
    ("/rme/v1/webhook-endpoints/{endpoint_id}/replay", "POST"),
]
NOTHING_WRONG = {
    # Any text is an id as far as the description goes, and the others take nothing at all.
    ("/rme/v1/devices/vapid-key", "GET"),
    ("/rme/v1/devices/{device_id}", "DELETE"),
    ("/rme/v1/health", "GET"),
    ("/rme/v1/messages/{message_id}", "DELETE"),
    ("/rme/v1/suppressions/{suppression_id}", "GET"),
    ("/rme/v1/suppressions/{suppression_id}", "DELETE"),
    ("/rme/v1/webhook-endpoints/{endpoint_id}", "GET"),
    ("/rme/v1/webhook-endpoints/{endpoint_id}", "DELETE"),
    ("/rme/v1/webhook-endpoints/{endpoint_id}/rotate-secret", "POST"),
    ("/rme/v1/webhook-endpoints/{endpoint_id}/test", "POST"),
}
POSITIVE, NEGATIVE = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
MODES = [
    (path, method, mode)
    for path, method in OPERATIONS
    for mode in (POSITIVE, NEGATIVE)
    if mode is POSITIVE or (path, method) not in NOTHING_WRONG
]
TELLS_OF_EACH = {
    # One bad item of many fails no other: its error stands in its place in a 2xx.
    ("/rme/v1/messages/bulk", "POST"): 202,
    ("/rme/v1/consent", "POST"): 201,
    ("/rme/v1/devices", "POST"): 201,
    ("/rme/v1/suppressions", "POST"): 201,
}
CURSOR = "cursor: not a cursor of ours"  # only we know which are
ADDRESS = "address: not an address on the channel [A-Z]+"  # E.164 is more than a pattern
# JSON Schema can't bound the numbers in values of any kind.
LONG_NUMBER = r"[\s\S]+: is a number of more than 64 bits: write it as a string"
CATEGORY = r"category: no such category: [\s\S]* \(there are .+\)"
SENDS = (
    LONG_NUMBER,
    CATEGORY,
    r"to\[[0-9]+\].contactId: the same contact twice",
    "channels: the same channel twice",  # `EMAIL` and `email`
    "from.domain: must be a domain name",
    "from.domain: not a verified sender domain",
    r"schedule\.(at|date): (this time has passed|more than a year ahead|is out of range)",
    r"schedule\.time: this time has passed there",
)
WRONG_URL = (
    "url: must be an address like https://hooks.example.com/rme",
    "url: the address is not (https|public)",
    "body: your organization has all 20 endpoints: delete one first",
)
REFUSES: dict[tuple[str, str], tuple[str, ...]] = {
    ("/rme/v1/messages", "POST"): SENDS,
    ("/rme/v1/messages", "GET"): (CURSOR,),
    ("/rme/v1/messages/bulk", "POST"): SENDS,
    ("/rme/v1/consent", "GET"): (CURSOR,),
    ("/rme/v1/consent", "POST"): (
        r"category: no such category: .+ \(there are .+\)",
        "occurredAt: lies in the future",
    ),
    ("/rme/v1/devices", "GET"): (CURSOR,),
    ("/rme/v1/devices", "POST"): (
        "timeZone: must be an IANA time zone",  # whose list is not the description's
        "token: must be a PushSubscription: endpoint and keys",  # JSON in a string
        r"token\.endpoint: is not of a push service that is known here",
        r"token\.endpoint: must be (an https address|on port 443)",
        r"token\.keys\.(p256dh|auth): must be .* base64url",  # a point on a curve
    ),
    ("/rme/v1/templates", "GET"): (CURSOR,),
    # where the template is there for several
    ("/rme/v1/templates/{name}/render", "POST"): (
        "channel: must be one of [A-Z, ]+",
        LONG_NUMBER,
    ),
    ("/rme/v1/suppressions", "POST"): (ADDRESS, "expiresAt: must be ahead, by less than 100 years"),
    ("/rme/v1/suppressions", "GET"): (CURSOR, ADDRESS),
    ("/rme/v1/suppressions", "DELETE"): (
        ADDRESS,
        # OpenAPI has no words for what one parameter asks of another.
        "id: give id, or channel with one of address and contactId",
    ),
    ("/rme/v1/webhook-endpoints", "GET"): (CURSOR,),
    ("/rme/v1/webhook-endpoints", "POST"): WRONG_URL,
    ("/rme/v1/webhook-endpoints/{endpoint_id}", "PATCH"): WRONG_URL,
    ("/rme/v1/webhook-endpoints/{endpoint_id}/replay", "POST"): (
        "until: (must be after since, by at most 3 days|lies in the future)",
    ),
}
"""What INVALID_PAYLOAD may say of data that the description allows: what no schema can tell,
since it is about what there is, about now, or about an address. All else is a defect.
"""
WITH_KEYS = {"/rme/v1/messages", "/rme/v1/messages/bulk"}


def _checks(path, method):
    """Return the statuses that the contract has for a call beyond those that Schemathesis knows."""
    positive = [*checks.POSITIVE_DATA_ACCEPTANCE_EXPECTED_STATUSES]
    positive += ["400"] if (path, method) in REFUSES else []
    # a key that was used for another request; and a recipient without an address
    positive += ["422"] if path in WITH_KEYS else []
    negative = [*checks.NEGATIVE_DATA_REJECTION_EXPECTED_STATUSES, "413"]  # a body over the limit
    if tells := TELLS_OF_EACH.get((path, method)):
        negative.append(str(tells))
    return {
        "include-name": f"{method} {path}",  # a path and a method would each do by itself
        "checks": {
            "positive_data_acceptance": {"expected-statuses": positive},
            "negative_data_rejection": {"expected-statuses": negative},
        },
    }


@cache
def document():
    """Return the description as it is served; making it takes a third of a second."""
    answer = Client().get("/rme/v1/openapi.json")
    assert answer.status_code == 200
    return answer.content


@cache
def described():
    """Read the description once: what Schemathesis draws from it holds for all operations."""
    config = {
        # No text holds a NUL, at whatever depth: the contract says so of all calls at once, and
        # tests/messaging/contract/test_errors.py tries it.
        "generation": {"allow-x00": False},
        "operations": [_checks(*each) for each in OPERATIONS],
    }
    read = schemathesis.openapi.from_dict(
        orjson.loads(document()), config=schemathesis.Config.from_dict(config)
    )
    read.app, read.location = get_wsgi_application(), "/rme/v1/openapi.json"
    return read


@pytest.mark.promise("discovery-2")
def test_every_operation_is_described(org):
    operations = described().get_all_operations()
    found = {(each.ok().path, each.ok().method.upper()) for each in operations}
    assert found == set(OPERATIONS)


def test_summaries_and_descriptions_are_plain_sentences():
    """Generated clients take them as docstrings, which begin with Return, Get, Send, Replace …"""
    paths = orjson.loads(document())["paths"].values()
    operations = [each for path in paths for each in path.values() if "operationId" in each]
    texts = {each.get(name, "") for each in operations for name in ("summary", "description")}
    assert len(texts) > len(OPERATIONS)
    assert {text for text in texts if re.match(r"(Give|Say|Tell|What|Who)\b", text)} == set()


def test_update_has_no_defaults():
    """A generated client would send them, and so change what the caller left out."""
    schemas = orjson.loads(document())["components"]["schemas"]
    fields = schemas["PatchedEndpointUpdateInput"]["properties"]
    assert set(fields) == {"url", "description", "types", "enabled"}
    assert [name for name, field in fields.items() if "default" in field] == []


def test_no_default_is_null():
    assert b'"default":null' not in document().replace(b'"default": null', b'"default":null')


def test_token_url_is_absolute(settings):
    scheme = orjson.loads(document())["components"]["securitySchemes"]["oauth2"]
    url = scheme["flows"]["clientCredentials"]["tokenUrl"]
    assert url == f"{settings.BASE_URL}/services/oauth2/token"


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


@pytest.mark.promise("calls-16", "discovery-7")
@pytest.mark.parametrize(("path", "method", "mode"), MODES)
def test_every_answer_conforms_to_the_description(org, path, method, mode):
    api = Api(org)
    ada, operation = str(factories.contact(org).pk), described()[path][method]
    with one_connection():

        @EFFORT
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode), aimed=st.booleans())
        def check(case, aimed):
            if aimed and mode is POSITIVE:
                _aim(case, ada)
            answer = case.call_and_validate(headers={"Authorization": f"Bearer {api.token}"})
            if mode is POSITIVE:
                _says_only_what_no_schema_tells(path, method, answer)
            elif answer.status_code == TELLS_OF_EACH.get((path, method)):
                assert answer.json()["rejected"] > 0, case.as_curl_command()

        check()


def _aim(case, contact_id):
    """Name what there is, so that more of what is allowed is looked at to its end."""
    if case.headers:
        case.headers.pop("Idempotency-Key", None)
        case.headers.pop("Prefer", None)  # no worker runs here: it would wait in vain
    if isinstance(case.query, dict):
        case.query.pop("cursor", None)
    if "name" in (case.path_parameters or {}):
        case.path_parameters["name"] = "welcome"
    known = {
        "contactId": contact_id,
        "category": "TRANSACTIONAL",
        "timeZone": "UTC",
        "template": {"name": "welcome", "language": "en_US"},
        "from": {"domain": "acme.example"},
        "context": {"variables": {"note": "hello"}},
        "version": 1,
        "language": "en_US",
    }
    for item in _items(case.body):
        for names in [item, *(to for to in item.get("to", []) if isinstance(to, dict))][:2]:
            names |= {name: value for name, value in known.items() if names.get(name)}


def _items(body):
    if not isinstance(body, dict):
        return []
    many = body.get("messages", body.get("entries"))
    return [item for item in many if isinstance(item, dict)] if many else [body]


def _says_only_what_no_schema_tells(path, method, answer):
    """Look at what INVALID_PAYLOAD says: of the whole call, or of an item of many."""
    body = answer.json() if answer.content else {}
    results = body.get("results", [])
    found = [each["error"] for each in (body, *results) if each.get("error")]
    allowed = "|".join(REFUSES.get((path, method), ()))
    for detail in (d for error in found if error["code"] == INVALID for d in error["details"]):
        text = f"{detail['field']}: {detail['message']}"
        assert re.fullmatch(allowed, text), text


def test_docs_page_has_its_own_content_security_policy():
    policies = []
    for path in ("/rme/v1/docs", "/rme/v1/docs", "/rme/v1/docs?script="):
        page = Client().get(path)
        assert (page["X-Frame-Options"], page["X-Content-Type-Options"]) == ("DENY", "nosniff")
        policies.append(page["Content-Security-Policy"])
    nonce = re.search("nonce-([^']{22})'", policies[0])[1]
    assert policies[0] == (
        "default-src 'none'; script-src 'self'; "
        f"style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    assert len(set(policies)) == 3
    assert re.findall(rb"<script(?! src=)|<style>|\son\w+=|\sstyle=", page.content) == []


@pytest.mark.promise("discovery-5")
def test_docs_work_offline():
    page = Client().get("/rme/v1/docs")
    assert page.status_code == 200
    for part in page.content.decode().split('"'):
        assert not part.startswith(("http:", "https:", "//")), part
    bundle = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
    assert bundle in page.content.decode()
    assert Client().get(bundle).status_code == 200
    assert b"openapi.json" in Client().get("/rme/v1/docs?script=").content
