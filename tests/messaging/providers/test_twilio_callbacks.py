"""Twilio's webhooks, signed by Twilio's own library: what we take, and what we refuse."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import orjson
import pytest
from twilio.request_validator import RequestValidator

from messaging.feedback import callbacks
from messaging.models import Callback, ConsentEntry, Event, Suppression
from rme.core import ids
from tests import factories
from tests.fakes.providers import FORM, SECRET, Call
from tests.messaging.feedback.sms_scene import Scene, attempt, post, settle, state

pytestmark = pytest.mark.django_db
BASES = [
    "https://rme.example",
    "https://rme.example:443",
    "https://rme.example:8443",
    "http://rme.example:8000",
    "https://[2001:db8::1]:8443",
]


def signed(url, query="", form=None, token=SECRET, method="POST", body=None):
    """Sign a call as Twilio does, over the URL as Twilio saw it."""
    full = f"{url}?{query}" if query else url
    signature = RequestValidator(token).compute_signature(full, form or {})
    content = "application/json" if body is not None else FORM
    headers = {"x-twilio-signature": signature, "content-type": content}
    return Call(method, query, headers, urlencode(form or {}).encode() if body is None else body)


def report(**more):
    return {"MessageSid": "SM1", "MessageStatus": "delivered", "To": "+12025550123", **more}


def inbound_sms(sid, text="STOP", **more):
    return {"MessageSid": sid, "From": "+12025550123", "To": "+12025550100", "Body": text, **more}


@pytest.mark.promise("webhooks-1")
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("query", ["", "attempt={}", "attempt={}&a=1&b=%2B%C3%A9&a=2&c="])
def test_call_signed_by_twilio_is_accepted(scene, settings, base, query):
    settings.BASE_URL = base
    query = query.format(ids.new_id())
    form = report(ErrorMessage="Grüezi & + = ?", Empty="", z="1", A="2", a="3")
    assert scene.call(signed(scene.url, query, form)) == 200
    assert scene.call(signed(scene.url, f"MessageStatus=sent&{query}", method="GET")) == 200


@pytest.mark.parametrize(
    ("base", "seen"),
    [
        ("https://rme.example", "https://rme.example:443"),
        ("https://rme.example:443", "https://rme.example"),
        ("http://rme.example", "http://rme.example:80"),
        ("https://rme.example:8443", "https://rme.example"),
    ],
)
def test_a_port_is_signed_or_left_out(scene, settings, base, seen):
    settings.BASE_URL = base
    url = scene.url.replace(base, seen)
    assert RequestValidator(SECRET).validate(
        f"{scene.url}", report(), RequestValidator(SECRET).compute_signature(url, report())
    )
    assert scene.call(signed(url, "", report())) == 200
    assert scene.call(signed(url.replace(seen, "https://rme.example:9"), "", report())) == 403


def test_json_is_signed_by_its_digest(scene):
    body = orjson.dumps({"MessageStatus": "delivered"})
    digest = RequestValidator(SECRET).compute_hash(body.decode())
    assert scene.call(signed(scene.url, f"bodySHA256={digest}", body=body)) == 200
    assert scene.call(signed(scene.url, f"bodySHA256={digest}", body=body + b" ")) == 403
    assert scene.call(signed(scene.url, "bodySHA256=", body=body)) == 403
    assert scene.call(signed(scene.url, "bodySHA256=é", body=body)) == 403
    assert scene.call(signed(scene.url, "", body=body)) == 403


FORGED = {
    "another body": lambda call: call._replace(body=call.body + b"&Body=START"),
    "another query": lambda call: call._replace(query=f"{call.query}&a=1"),
    "no query": lambda call: call._replace(query=""),
    "another method's body": lambda call: call._replace(method="GET", body=b""),
    "no signature": lambda call: call._replace(headers={"content-type": FORM}),
    "an empty signature": lambda call: call._replace(
        headers={**call.headers, "x-twilio-signature": ""}
    ),
    "a signature cut": lambda call: call._replace(
        headers={**call.headers, "x-twilio-signature": call.headers["x-twilio-signature"][:-1]}
    ),
    "no signature's letters": lambda call: call._replace(
        headers={**call.headers, "x-twilio-signature": "é" * 28}
    ),
    "called JSON": lambda call: call._replace(
        headers={**call.headers, "content-type": "application/json"}
    ),
}
KINDS = {"report": report, "inbound_sms": lambda: inbound_sms("SM2")}


@pytest.mark.promise("webhooks-1")
@pytest.mark.parametrize("change", FORGED)
@pytest.mark.parametrize("kind", KINDS)
def test_forged_call_is_rejected(scene, kind, change):
    call = signed(scene.url, f"attempt={ids.new_id()}", KINDS[kind]())
    assert scene.call(FORGED[change](call)) == 403
    assert scene.call(signed(scene.url, call.query, KINDS[kind](), token=SECRET[:-1])) == 403
    assert not Callback.objects.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_call_for_another_account_is_rejected(org, scene, kind):
    other = factories.organization("other")
    with Scene(other, "twilio") as theirs:
        theirs.account.credentials = theirs.account.credentials.replace(SECRET, "another" * 8)
        theirs.account.save()
        for url, token, called in (
            (theirs.url, "another" * 8, scene),  # their call, to us
            (scene.url, "another" * 8, scene),  # signed by them for us
            (theirs.url, SECRET, scene),
        ):
            call = signed(url, f"attempt={ids.new_id()}", KINDS[kind](), token=token)
            assert post(called.account.public_id, call) == 403
    assert not Callback.objects.exists()


@pytest.mark.promise("webhooks-1")
def test_replayed_report_changes_nothing(org, api, scene):
    message_id = scene.send(api, factories.contact(org))
    call = signed(scene.url, f"attempt={attempt()}", report())
    assert [scene.call(call) for _ in range(3)] == [200] * 3
    assert (settle(), state()) == (1, "DELIVERED")
    before = list(Event.objects.filter(message_id=message_id).values_list("pk", flat=True))
    assert (scene.call(call), settle()) == (200, 0)
    Callback.objects.all().delete()  # as if it had been forgotten
    assert (scene.call(call), settle()) == (200, 1)
    assert list(Event.objects.filter(message_id=message_id).values_list("pk", flat=True)) == before


def test_a_replayed_inbound_sms_is_stored_once(scene):
    calls = [
        signed(scene.url, "", inbound_sms(f"SM{n}", text))
        for n, text in enumerate(["STOP", "START"])
    ]
    for call in calls:
        assert scene.call(call) == 200
        settle()
    assert (scene.call(calls[0]), settle()) == (200, 0)
    Callback.objects.update(received_at=datetime.now(UTC) - timedelta(days=399))
    callbacks.purge()
    assert {
        (row.query, row.headers.get("x"), bytes(row.body)) for row in Callback.objects.all()
    } == {("", None, b"")}
    assert (scene.call(calls[0]), settle()) == (200, 0)
    assert (Suppression.objects.count(), ConsentEntry.objects.count()) == (0, 0)
