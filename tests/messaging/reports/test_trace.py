"""The trace of a message in the API and the admin."""

from datetime import UTC, datetime, timedelta

import pytest

from messaging.consent import ledger, suppressions
from messaging.models import Category, Delivery, Pause, ProviderAccount, SendingRules
from messaging.store.gates import active_suppressions
from rme.core.cache import TtlCache
from tests import factories
from tests.rest import error, message, work

pytestmark = pytest.mark.django_db


def steps(api, message_id):
    """Return the steps of the only recipient without their times."""
    (recipient,) = api.call("GET", f"/messages/{message_id}?include=trace").json()["trace"]
    times = [step.pop("at") for step in recipient["steps"]]
    assert times == sorted(times)
    return recipient["steps"]


def decide(org, person, status, channel="EMAIL", category="TRANSACTIONAL"):
    made = ledger.ConsentDecision(
        str(person.pk), channel, category, status, "API", datetime.now(UTC)
    )
    (entry,) = ledger.record(org.pk, [made])
    return str(entry.pk)


@pytest.mark.promise("trace-5")
def test_trace_is_left_out_by_default(api, org):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    assert "trace" not in api.get(message_id)
    assert Delivery.objects.get().trace is None  # what is as usual takes no room


@pytest.mark.promise("trace-5")
def test_unknown_include_is_rejected(api, org):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    answer = api.call("GET", f"/messages/{message_id}?include=all")
    reason = "Input should be 'trace'"
    assert (answer.status_code, answer.json()) == (
        400,
        error("INVALID_PAYLOAD", f"include: {reason}", ("include", reason)),
    )


@pytest.mark.promise("trace-3")
def test_a_send_shows_its_decision_and_its_attempt(api, org):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    work()
    decision, attempt = steps(api, message_id)
    assert decision == {"step": "DECISION", "channel": "EMAIL", "result": "CHOSEN"}
    latency, provider_id = attempt.pop("latencyMs"), attempt.pop("providerId")
    assert (latency >= 0, bool(provider_id)) == (True, True)
    assert attempt == {
        "step": "ATTEMPT",
        "channel": "EMAIL",
        "result": "ACCEPTED",
        "provider": "simulator",
    }


@pytest.mark.promise("trace-2")
def test_excluded_channels_have_a_reason(api, org):
    person = factories.contact(org, mobile="")
    entry = decide(org, person, "OPTED_OUT", channel="PUSH")
    factories.device(org, person)
    body = message(person, channel=None, channels=["SMS", "PUSH", "EMAIL"])
    message_id = api.send(body).json()["messageId"]
    assert steps(api, message_id) == [
        {"step": "DECISION", "channel": "SMS", "result": "UNREACHABLE"},
        {"step": "DECISION", "channel": "PUSH", "result": "NO_CONSENT", "entry": entry},
        {"step": "DECISION", "channel": "EMAIL", "result": "CHOSEN"},
    ]


@pytest.mark.promise("trace-1")
def test_consent_entry_allowing_a_send_is_named(api, org):
    person = factories.contact(org)
    entry = decide(org, person, "OPTED_IN")
    message_id = api.send(message(person)).json()["messageId"]
    assert steps(api, message_id) == [
        {"step": "DECISION", "channel": "EMAIL", "result": "CHOSEN", "entry": entry}
    ]


@pytest.mark.promise("trace-1")
def test_a_refusal_at_accept_names_its_entry(api, org):
    person = factories.contact(org)
    suppressions.suppress(
        [suppressions.NewSuppression(org.pk, "EMAIL", person.email, "STOP", "API")]
    )
    listed = active_suppressions.read(org.pk, [person.email], []).addresses
    answer = api.send(message(person)).json()
    assert steps(api, answer["error"]["messageId"]) == [
        {
            "step": "DECISION",
            "channel": "EMAIL",
            "result": "SUPPRESSED",
            "entry": listed["EMAIL", person.email],
        }
    ]


@pytest.mark.promise("trace-1")
def test_a_refusal_at_the_moment_of_sending_names_its_entry(api, org):
    person = factories.contact(org)
    message_id = api.send(message(person)).json()["messageId"]
    entry = decide(org, person, "OPTED_OUT")
    work()
    assert steps(api, message_id)[1:] == [
        {"step": "GATE", "channel": "EMAIL", "result": "NO_CONSENT", "entry": entry}
    ]


@pytest.mark.promise("gates-10", "trace-4")
def test_a_pause_shows_as_a_wait(api, org):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    Pause.objects.create(organization=org, reason="maintenance")
    work()
    (wait,) = [step for step in steps(api, message_id) if step["step"] == "WAIT"]
    assert datetime.fromisoformat(wait.pop("until")) > datetime.now(UTC)
    assert wait == {"step": "WAIT", "channel": "EMAIL", "result": "PAUSED"}


@pytest.mark.promise("trace-4")
def test_a_backoff_shows_the_providers_reason(api, org, settings):
    settings.BACKOFF_SECONDS = 900
    person = factories.contact(org, email="down@simulator.rme.test")
    message_id = api.send(message(person)).json()["messageId"]
    work()
    found = steps(api, message_id)
    assert [step["result"] for step in found if step["step"] == "ATTEMPT"] == ["RETRYABLE"]
    waits = {step["result"]: step for step in found if step["step"] == "WAIT"}
    assert set(waits) == {"simulated: the provider is down", "PROVIDER"}
    assert datetime.fromisoformat(waits["PROVIDER"]["until"]) > datetime.now(UTC)


@pytest.mark.parametrize("channel", ["EMAIL", "SMS"])
def test_statements_do_not_grow_with_recipients(api, org, channel, django_assert_num_queries):
    people = factories.contacts(org, 20)
    for count in (2, 20):
        body = message(*people[:count], channel=channel)
        message_id = api.send(body).json()["messageId"]
        work()
        api.get(message_id)
        with django_assert_num_queries(4):
            answer = api.call("GET", f"/messages/{message_id}?include=trace").json()
        assert [len(one["steps"]) for one in answer["trace"]] == [2] * count


@pytest.mark.promise("calls-2")
def test_another_organization_sees_no_trace(api, org):
    message_id = api.send(message(factories.contact(org))).json()["messageId"]
    from tests.rest import Api

    stranger = Api(factories.organization("other"))
    answer = stranger.call("GET", f"/messages/{message_id}?include=trace")
    assert (answer.status_code, answer.json()) == (
        404,
        error("NOT_FOUND", "This message doesn't exist."),
    )


# --- quiet hours ----------------------------------------------------------------------------------


def quiet(org, channel="EMAIL", **fields):
    """Make the hour around now quiet, in UTC, where the contacts are too."""
    now = datetime.now(UTC)
    begins, ends = now - timedelta(hours=1), now + timedelta(hours=1)
    hours = {channel: {"from": f"{begins:%H:%M}", "until": f"{ends:%H:%M}"}}
    SendingRules.objects.create(organization=org, quiet_hours=hours, **fields)
    TtlCache.clear_all()
    return ends.replace(second=0, microsecond=0)


def marketing(org, person):
    Category.objects.create(organization=org, name="NEWS", regime="OPT_OUT")
    content = {"subject": "News", "text": "All of them"}
    return message(person, category="NEWS", template=None, context=None, content=content)


@pytest.mark.promise("schedule-10")
def test_quiet_hours_delay_a_send_to_their_end(api, org):
    ends = quiet(org)
    answer = api.send(marketing(org, factories.contact(org, zone="UTC"))).json()
    assert answer["status"] == "SCHEDULED"
    assert datetime.fromisoformat(answer["scheduledFor"]) == ends
    decision, put_off = steps(api, answer["messageId"])
    assert decision["result"] == "CHOSEN"
    assert put_off == {
        "step": "DECISION",
        "channel": "EMAIL",
        "result": "QUIET_HOURS",
        "until": answer["scheduledFor"],
    }


@pytest.mark.promise("schedule-10")
def test_quiet_hours_are_the_recipients(api, org):
    quiet(org)
    answer = api.send(marketing(org, factories.contact(org, zone="Asia/Kolkata"))).json()
    assert answer["status"] == "ACCEPTED"


@pytest.mark.promise("schedule-11")
@pytest.mark.parametrize(("held", "status"), [(False, "ACCEPTED"), (True, "SCHEDULED")])
def test_quiet_hours_hold_for_transactional_if_set(api, org, held, status):
    quiet(org, quiet_transactional=held)
    answer = api.send(message(factories.contact(org, zone="UTC"))).json()
    assert answer["status"] == status


def test_quiet_hours_hold_for_a_fallback_too(api, org):
    ends = quiet(org, "SMS", quiet_transactional=True)
    ProviderAccount.objects.create(organization=org, name="mail", kind="simulator", channel="EMAIL")
    ProviderAccount.objects.create(organization=org, name="sms", kind="simulator", channel="SMS")
    TtlCache.clear_all()
    person = factories.contact(org, zone="UTC")
    body = message(person, channel=None, channels=["EMAIL", "SMS"])
    message_id = api.send(body).json()["messageId"]
    decide(org, person, "OPTED_OUT")
    work()
    row = Delivery.objects.get()
    assert (row.channel, row.status, row.waiting) == ("SMS", "ACCEPTED", "QUIET_HOURS")
    assert row.due_at == ends
    found = {step["step"]: step["result"] for step in steps(api, message_id)}
    assert found == {"DECISION": "CHOSEN", "FALLBACK": "NO_CONSENT", "WAIT": "QUIET_HOURS"}
