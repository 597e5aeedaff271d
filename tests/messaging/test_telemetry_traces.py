"""Traces, by the library's real exporter: from the request to provider, receipt and webhook."""

import time

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from messaging.api.messages import SINGLE_SENDS
from messaging.domain.progress.receipts import Receipt
from messaging.feedback import receipts
from messaging.models import Delivery, MessageContent, ProviderAccount
from messaging.providers.smtp import Smtp
from messaging.webhooks import outbox
from messaging.webhooks.dispatcher import Dispatcher
from rme.core.cache import TtlCache
from rme.core.provider import Dispatch, Email
from rme.core.provider.base import traced
from rme.core.telemetry import tracing
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.otlp import Collector
from tests.messaging.webhooks.webhook_scene import Receiver, dispatch_all, endpoint
from tests.rest import message, work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
TRACE, OTHER = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"
PARENT = "00f067aa0ba902b7"
SAMPLED, UNSAMPLED = f"00-{TRACE}-{PARENT}-01", f"00-{TRACE}-{PARENT}-00"
SMS = {"channel": "SMS", "template": None, "content": {"text": "Hello"}}


@pytest.fixture
def collector(settings, monkeypatch):
    """Return a collector, with tracing on; what this process has made is there after `stop`."""
    with Collector() as made:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", made.url.rstrip("/"))
        settings.TRACING = True
        tracing.start()
        yield made
        tracing.stop()


@pytest.fixture
def gateway(org):
    """Return a provider of SMS over HTTP, and its receiver."""
    with Receiver(*[200] * 9, body=b'{"id": "one"}') as made:
        ProviderAccount.objects.create(
            organization=org,
            name="gateway",
            kind="http_sms",
            channel="SMS",
            credentials=orjson.dumps({"url": f"{made.url}send"}).decode(),
        )
        TtlCache.clear_all()
        yield made


def test_a_message_is_one_trace_from_its_request_to_its_webhook(
    api, org, receiver, gateway, collector
):
    endpoint(org, f"{receiver.url}hook", "message.sent")
    ada = factories.contact(org)
    sent = api.send(message(ada, **SMS), traceparent=SAMPLED).json()["messageId"]
    work()
    receipts.apply([Receipt(Delivery.objects.get().pk, "delivered")])
    dispatch_all()
    tracing.stop()
    spans = {span.name: span for span in collector.spans}
    request, accept = spans["POST /rme/v1/messages"], spans["accept"]
    attempt, receipt, webhook = (
        spans["attempt http_sms"],
        spans["receipt delivered"],
        spans["webhook"],
    )
    assert {s.trace for s in (request, accept, attempt, receipt, webhook)} == {TRACE}
    assert request.parent == PARENT
    assert {s.parent for s in (accept, attempt, receipt, webhook)} == {request.id}
    assert spans["claim"].links == [TRACE]
    assert spans["claim"].trace != TRACE
    (provider_call,), (webhook_call,) = gateway.seen, receiver.seen
    assert provider_call.header("traceparent") == attempt.traceparent
    assert webhook_call.header("traceparent") == webhook.traceparent
    assert attempt.attributes == {
        "rme.organization_id": org.pk,
        "rme.message_id": sent,
        "rme.delivery_id": sent,
        "rme.attempt_id": attempt.attributes["rme.attempt_id"],
        "rme.channel": "SMS",
        "rme.claim": 1,
        "rme.provider": "http_sms",
        "rme.account_id": ProviderAccount.objects.get().pk,
        "rme.outcome": "Accepted",
    }
    assert [span.name for span in collector.spans if span.failed] == []
    # ids alone: no address, name, text, URL or contact
    told = str(collector.spans)
    for private in (ada.mobile, ada.last_name, "Hello", "127.0.0.1", str(ada.pk)):
        assert private
        assert private not in told


def test_log_lines_name_the_trace(api, org, collector, caplog):
    assert api.call("GET", "/messages", traceparent=SAMPLED).status_code == 200
    assert api.call("GET", "/messages", traceparent=UNSAMPLED).status_code == 200
    records = [record.msg for record in caplog.records]
    requests = [lines for lines in records if isinstance(lines, list)]
    lines = [line for lines in requests for line in lines if line["event"] == "request"]
    assert [line.get("trace_id") for line in lines] == [TRACE, None]


def test_unsampled_trace_leaves_nothing_behind(api, org, gateway, collector):
    for headers in ({"traceparent": UNSAMPLED}, {"traceparent": "00-zz-1-01"}):
        api.send(message(factories.contact(org), **SMS), **headers)
    work()
    tracing.stop()
    bodies = MessageContent.objects.values_list("body", flat=True)
    # a header that is no context begins a trace of its own
    assert sorted("traceparent" in body for body in bodies) == [False, True]
    assert len(collector.named("attempt http_sms")) == 1
    assert TRACE not in str(collector.spans)
    assert sum(seen.header("traceparent") is None for seen in gateway.seen) == 1


def test_set_has_one_span_linked_to_a_span_per_call(api, org, collector):
    def call(traceparent):
        environ = {
            "QUERY_STRING": "",
            "CONTENT_TYPE": "application/json",
            "HTTP_HOST": "localhost",
            "HTTP_AUTHORIZATION": f"Bearer {api.token}",
            "HTTP_TRACEPARENT": traceparent,
            "REMOTE_ADDR": "127.0.0.1",
            "wsgi.url_scheme": "http",
        }
        body = orjson.dumps(message(factories.contact(org)))
        return SINGLE_SENDS.read(environ, body)

    answers = SINGLE_SENDS.answer([call(SAMPLED), call(SAMPLED.replace(TRACE, OTHER))])
    assert [answer.status for answer in answers] == [202, 202]
    tracing.stop()
    calls = collector.named("POST /rme/v1/messages")
    assert [span.trace for span in calls] == [TRACE, OTHER]
    ids = [orjson.loads(answer.body)["messageId"] for answer in answers]
    assert [span.attributes["rme.message_id"] for span in calls] == ids
    (accept,) = collector.named("accept")
    assert (accept.trace, accept.links) == (TRACE, [OTHER])
    assert accept.attributes == {"rme.messages": 2}
    kept = dict(MessageContent.objects.values_list("pk", "body"))
    assert {str(pk): body["traceparent"] for pk, body in kept.items()} == dict(
        zip(ids, [span.traceparent for span in calls], strict=True)
    )


def test_traces_cost_no_statement(api, org, receiver, gateway, collector):
    endpoint(org, f"{receiver.url}hook", "message.sent")
    ada = factories.contact(org)

    def dispatch_one():
        """Dispatch by one claim: how often a run claims depends on how long an answer takes."""
        dispatcher = Dispatcher(Transport(AddressPolicy(["127.0.0.1"])))
        dispatcher.start(outbox.claim(1))
        dispatcher.finish()
        dispatcher.close()

    def count(**headers):
        with CaptureQueriesContext(connection) as captured:
            assert api.send(message(ada, **SMS), **headers).status_code == 202
            work()
            receipts.apply([Receipt(Delivery.objects.latest("pk").pk, "delivered")])
            dispatch_one()
        return len([each for each in captured if "pg_sleep" not in each["sql"]])

    count()
    traced = count(traceparent=SAMPLED)
    tracing.stop()
    assert len(collector.named("webhook")) == 2
    assert count() == traced


def test_a_failed_attempt_is_an_error_without_the_providers_words(api, org, gateway, collector):
    gateway.statuses, gateway.body = [400], b'{"error": "+41791234567 is not yours"}'
    api.send(message(factories.contact(org), **SMS), traceparent=SAMPLED)
    work()
    tracing.stop()
    (attempt,) = collector.named("attempt http_sms")
    assert attempt.failed
    assert attempt.attributes["rme.outcome"] == "Rejected"
    assert "not yours" not in str(collector.spans)


def test_without_tracing_no_context_is_kept_or_handed_on(api, org, gateway):
    api.send(message(factories.contact(org), **SMS), traceparent=SAMPLED)
    work()
    (body,) = MessageContent.objects.values_list("body", flat=True)
    assert "traceparent" not in body
    (seen,) = gateway.seen
    assert seen.header("traceparent") is None


def test_unreachable_collector_does_not_delay_sends(api, org, settings, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    settings.TRACING = True
    tracing.start()
    try:
        before = time.thread_time()
        assert api.send(message(factories.contact(org)), traceparent=SAMPLED).status_code == 202
        assert time.thread_time() - before < 5
    finally:
        tracing.stop()


def test_a_mail_has_no_trace_context():
    content = Email("to@x.test", "from@y.test", "Ann", "Hello", "Hi", message_id="1@y.test")
    account = Smtp(Smtp.Settings.model_validate({"host": "mail.test", "security": "NONE"}))
    dispatch = Dispatch("1", content, traceparent=SAMPLED)
    mail = account.request(dispatch)
    assert traced(mail, dispatch) is mail
    assert b"traceparent" not in mail.body
