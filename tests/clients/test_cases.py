"""One list of cases for both clients, against a running service."""

import time
from typing import Any

import pytest

from messaging.webhooks import signatures
from tests.clients.drivers import DRIVERS, Login, Step
from tests.messaging.webhooks.webhook_scene import Receiver
from tests.service import Service

pytestmark = pytest.mark.xdist_group("service")

MANY = 1000


@pytest.fixture
def service(callers_service: Service) -> Service:
    """Return a service with the demo organizations; the other one may make a call a second."""
    other = callers_service.demo()["other"]["org"]
    callers_service.sql(
        f"UPDATE tenants_organization SET calls_per_second = 1 WHERE id = '{other}' RETURNING id"
    )
    return callers_service


@pytest.fixture(params=sorted(DRIVERS))
def run(request: pytest.FixtureRequest, service: Service) -> Any:
    """Return a function that runs steps by one of the clients."""
    demo = service.demo()

    def run_steps(*steps: Step, of: str = "", retries: int = 3) -> list[dict[str, Any]]:
        own = demo[of] if of else demo
        login: Login = {
            "base_url": demo["auth_url"],
            "client_id": own["client_id"],
            "client_secret": own["client_secret"],
            "max_retries": retries,
        }
        return DRIVERS[request.param](login, steps)

    run_steps.demo = demo
    return run_steps


def step(call: str, *arguments: Any, **options: Any) -> Step:
    return {"call": call, "arguments": list(arguments), "options": options}


def message(contact_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "to": [{"contactId": contact_id}],
        "content": {"subject": "Hello", "text": "Hello from a client."},
        **fields,
    }


def test_a_message_is_sent_once_by_one_key(run):
    contact_id = run.demo["contact_ids"][0]
    send = step("send_message", message(contact_id), idempotency_key=f"key-{time.time_ns()}")
    other = step("send_message", message(contact_id))
    first, again, new = (each["result"]["messageId"] for each in run(send, send, other))
    assert first == again
    assert new != first
    (shown,) = run(step("get_message", first))
    assert shown["result"]["messageId"] == first


def test_invalid_bulk_item_is_rejected_alone(run):
    good, bad = message(run.demo["contact_ids"][0]), message("nobody")
    (bulk,) = run(step("send_messages", {"messages": [good, bad]}))
    assert (bulk["result"]["accepted"], bulk["result"]["rejected"]) == (1, 1)
    assert [each.get("error", {}).get("code") for each in bulk["result"]["results"]] == [
        None,
        "NOT_FOUND",
    ]


def test_a_dry_run_stores_nothing(run):
    body = message(run.demo["contact_ids"][0], metadata={"dry": str(time.time_ns())})
    (answer,) = run(step("send_message", body, dry_run=True))
    assert (answer["result"]["messageId"], answer["result"]["resolvedChannel"]) == (None, "EMAIL")


def test_an_error_names_the_field(run):
    (refused,) = run(step("send_message", message("x", channel="FAX")))
    assert (refused["error"], refused["status"], refused["code"]) == (
        "ApiError",
        400,
        "INVALID_PAYLOAD",
    )
    assert [each["field"] for each in refused["details"]] == ["channel"]


def test_a_429_is_raised_or_waited_for(run):
    calls = [step("list_templates")] * 3
    refused = run(*calls, of="other", retries=0)
    assert [each["error"] for each in refused if "error" in each]
    assert {(e["error"], e["code"]) for e in refused if "error" in e} == {
        ("RateLimited", "RATE_LIMITED")
    }
    assert all(each["retryAfter"] >= 1 for each in refused if "error" in each)
    assert ["result" in each for each in run(*calls, of="other", retries=5)] == [True] * 3


def test_a_thousand_are_read_page_by_page(run):
    entries = [{"channel": "EMAIL", "address": f"a{n}@paging.example"} for n in range(MANY)]
    add = [step("add_suppressions", {"entries": entries[n : n + 500]}) for n in (0, 500)]
    *added, listed = run(*add, step("iterate_suppressions", limit=200))
    assert [each["result"]["accepted"] for each in added] == [500, 500]
    found = [each["address"] for each in listed["result"]]
    assert len(set(found)) == len(found) == MANY


def test_a_webhook_is_verified_and_a_forged_one_is_not(run):
    with Receiver() as receiver:
        given = {"url": receiver.url, "types": ["consent.changed"]}
        (made,) = run(step("create_webhook_endpoint", given))
        key, secret = made["result"]["id"], made["result"]["secret"]
        run(step("test_webhook_endpoint", key))
        until = time.monotonic() + 60
        while not receiver.seen:
            assert time.monotonic() < until
            time.sleep(0.1)
        (seen,) = receiver.seen
        headers = {k: v for k, v in seen.headers if k.lower().startswith("webhook-")}
        body = seen.body.decode()
        right, forged, other, gone, again = run(
            step("verify", secret, headers, body),
            step("verify", secret, headers, body.replace("webhook.test", "message.sent")),
            step("verify", signatures.new_secret(), headers, body),
            step("delete_webhook_endpoint", key),
            step("get_webhook_endpoint", key),
        )
    assert right["result"]["type"] == "webhook.test"
    assert forged == other == {"error": "InvalidSignature"}
    assert (gone, again["status"]) == ({"result": None}, 404)
