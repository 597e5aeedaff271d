"""What the pictures of the documents show: the demo organization, with a row of each thing.

All is made by the functions that REST and the console call. `screenshots` sets Django up first.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

from messaging.accept import Call, Submission, accept
from messaging.accept.requests import MESSAGE
from messaging.consent import ledger
from messaging.consent.chain import checks
from messaging.consent.ledger import ConsentDecision
from messaging.consent.privacy import requests
from messaging.consent.privacy.requests import NewRequest
from messaging.consent.tasks import answer_privacy_requests, verify_ledgers
from messaging.console.access import Viewer
from messaging.console.actions import bulk_actions, tasks
from messaging.delivery import claims, deliver
from messaging.delivery.sending_process import SendingProcess
from messaging.domain.channels import Channel
from messaging.feedback import receipts
from messaging.links import PreferenceLink
from messaging.models import (
    BulkAction,
    CallbackLogEntry,
    CircuitChange,
    Delivery,
    Pause,
    ProviderAccount,
    SavedFilter,
    SenderDomain,
    Suppression,
    WebhookDelivery,
    WebhookEndpoint,
)
from messaging.statistics import minutes
from messaging.webhooks import managed_endpoints
from messaging.webhooks.endpoint_inputs import EndpointInput
from messaging.webhooks.managed_endpoints import EndpointScope
from rme.core import ids
from rme.core.db import clock
from rme.core.http import request_records
from rme.core.http.parsing import parse
from rme.core.http.request_records import Details, RequestRecord
from rme.core.outbound import outbound_transport
from rme.tenants import organizations
from rme.tenants.access import invitations
from rme.tenants.audit import Actor, request_log
from rme.tenants.models import (
    Application,
    Invitation,
    Membership,
    Organization,
    User,
)
from rme.tenants.oauth.authentication import Caller

ORG = "demo"
USER, PASSWORD = "maria", "a picture of the console"


def fill(made: dict[str, Any]) -> dict[str, str]:
    """Send messages, and make one of each thing; return the ids of what is shown."""
    row = Organization.objects.get(pk=ORG)
    user = User.objects.create_user(USER, "maria@demo.example", PASSWORD, is_staff=True)
    Membership.objects.create(organization=row, user=user, role=Membership.Role.OWNER)
    colleague = User.objects.create_user("ben", "ben@demo.example", is_staff=True)
    Membership.objects.create(organization=row, user=colleague, role=Membership.Role.SUPPORT)
    invitations.create(
        Invitation(organization=row, email="sam@demo.example", role="SUPPORT", invited_by=user)
    )
    caller = Caller(organizations.get(ORG), 1, user.pk, test=False)
    endpoint = _endpoint()
    later = (datetime.now(UTC) + timedelta(days=2)).isoformat(timespec="seconds")
    people = made["contact_ids"]
    actors = made["outcome_contacts"]
    for contact in people:
        _send(caller, contact, "EMAIL", "The doors open at nine. Bring your badge.")
    for contact in people[:3]:
        _send(caller, contact, "SMS", "Your session begins in ten minutes, in Hall 1.")
        _send(caller, contact, "PUSH", "Lunch is served in the atrium.")
    for word in ("bounce", "complaint", "reject", "unknown", "delivered"):
        for channel in ("EMAIL", "SMS"):
            _send(caller, actors[word], channel, "Thank you for coming.")
    _work()
    for word in ("bounce", "complaint"):
        _send(caller, actors[word], "EMAIL", "Your certificate is ready.")
    _send(caller, people[0], "EMAIL", "See you tomorrow.", schedule={"mode": "AT", "at": later})
    Delivery.objects.filter(organization_id=ORG, status="UNKNOWN").update(due_at=None)
    # Only now: an account takes the simulator's place on its channel.
    account = ProviderAccount.objects.create(
        organization=row,
        name="Mail server",
        kind="smtp",
        channel="EMAIL",
        credentials='{"host": "mail.demo.example", "username": "demo", "password": "x"}',
        checked_at=datetime.now(UTC),
    )
    _routing(row)
    Pause.objects.create(organization=row, channel="PUSH", reason="the app is being replaced")
    query = "status=FAILED&channel=EMAIL"
    SavedFilter.objects.create(
        organization=row, user=user, name="Rejected emails", query=query, is_shared=True
    )
    failed = Delivery.objects.filter(organization_id=ORG, status="FAILED").order_by("-pk")
    action = bulk_actions.start(
        Viewer(user, organizations.get(ORG), Actor(user.pk, USER, address="203.0.113.9")),
        BulkAction.Kind.RESEND,
        [each.pk for each in failed[:2]],
        scope="Status: Failed",
        reason="the provider has mended it",
    )
    tasks.run_bulk_actions()
    while minutes.count_slice(clock.now() + timedelta(minutes=2)):
        pass
    exported, erased = _requests(people, Actor(user.pk, USER))
    first = failed.latest("pk")
    webhook = _webhooks(endpoint)
    _api_requests(row, str(first.message_id))
    delivered = Delivery.objects.filter(organization_id=ORG, status="DELIVERED", channel="EMAIL")
    return {
        "person": actors["bounce"],
        "twins": f"contact={people[0]}&contact={people[1]}",
        "failed": str(first.message_id),
        "delivered": str(delivered.earliest("pk").message_id),
        "suppression": str(Suppression.objects.filter(organization=row).latest("pk").pk),
        "action": str(action.pk),
        "export": exported,
        "erasure": erased,
        "account": str(account.pk),
        "colleague": str(colleague.pk),
        "domain": str(SenderDomain.objects.filter(organization=row).latest("pk").pk),
        "endpoint": str(endpoint.pk),
        "webhook": str(webhook.pk),
        "token": PreferenceLink(ORG, people[0], "EMAIL", "MARKETING").token,
    }


ENDED = ["message.delivered", "message.bounced", "message.complained"]
"""Events that do not go on while the pictures are made."""


def _endpoint() -> WebhookEndpoint:
    """Add a webhook endpoint."""
    url = "https://shop.demo.example/hooks/rme"
    given = EndpointInput(url=url, description="Shop", types=ENDED)
    return managed_endpoints.create(EndpointScope(ORG), given, Actor(None, "the shop"))


def _routing(row: Organization) -> None:
    """Add accounts for SMS, the history of a circuit, and callbacks."""
    given = [("Vonage", 10, 3, ["+41"]), ("Twilio", 10, 1, ["+41"]), ("Kannel", 20, 1, [])]
    accounts = [
        ProviderAccount.objects.create(
            organization=row,
            name=name,
            kind="simulator",
            channel="SMS",
            priority=priority,
            weight=weight,
            match=match,
            checked_at=datetime.now(UTC),
        )
        for name, priority, weight, match in given
    ]
    for why in ("FAILING", "ANSWERED"):
        CircuitChange.objects.create(
            account_id=accounts[0].pk, is_open=why == "FAILING", why=why, at=datetime.now(UTC)
        )
    verdicts = ("APPLIED", "SIGNATURE", "APPLIED", "DUPLICATE", "UNKNOWN_ID", "APPLIED")
    for number, verdict in enumerate(verdicts):
        CallbackLogEntry.objects.create(
            organization_id=ORG,
            id=ids.new_id(),
            account_id=accounts[number % 2].pk,
            verdict=verdict,
            method="POST",
            size=300 + 7 * number,
            count=12 if verdict == "SIGNATURE" else 1,
            at=datetime.now(UTC),
        )


def _webhooks(endpoint: WebhookEndpoint) -> WebhookDelivery:
    """End the deliveries to an endpoint as if it had answered; return one that was given up."""
    now = clock.iso(clock.now())
    ok = {"at": now, "status": 200, "ms": 38, "error": None, "answer": "ok"}
    answer = '{"error": "no order with this id"}'
    rows = WebhookDelivery.objects.filter(endpoint_id=endpoint.pk)
    rows.update(status="DELIVERED", due_at=None, tries=1, attempts=[ok])
    late = {"at": now, "status": None, "ms": 15002, "error": "no answer in time", "answer": None}
    attempts = [late, {**ok, "status": 500, "ms": 112, "answer": answer}]
    newest = rows.order_by("-event_id")[:3]
    rows.filter(pk__in=[each.pk for each in newest]).update(
        status="FAILED", tries=2, attempts=attempts
    )
    row = rows.filter(status="FAILED").order_by("event_id").first()
    assert row is not None
    return row


def _api_requests(row: Organization, message_id: str) -> None:
    """Fill the request log."""
    program = Application.objects.filter(organization=row).earliest("pk")
    one = "/rme/v1/messages/{message_id}"
    made = [
        ("GET", "/rme/v1/health", 200, Details(), 12),
        ("POST", "/rme/v1/messages", 202, Details(message_id=message_id), 6),
        ("GET", one, 200, Details(message_id=message_id), 4),
        ("POST", "/rme/v1/messages", 400, Details("INVALID_PAYLOAD"), 2),
        ("POST", "/rme/v1/messages/bulk", 202, Details(), 184),
        ("POST", "/rme/v1/messages", 403, Details("SUPPRESSED", message_id), 7),
        ("GET", one, 404, Details("NOT_FOUND"), 3),
        ("POST", "/rme/v1/messages", 429, Details("RATE_LIMITED"), 1),
    ]
    request_records.buffer.add(
        [
            RequestRecord(
                organization_id=ORG,
                application_id=program.pk,
                request_id=str(ids.new_id()),
                method=method,
                route=route,
                status=status,
                seconds=milliseconds / 1000,
                at=time.time_ns() + number * 10**7,
                details=details,
            )
            for number, (method, route, status, details, milliseconds) in enumerate(made)
        ]
    )
    request_log.store_pending()


def _requests(people: list[str], actor: Actor) -> tuple[str, str]:
    """Record consent, verify the ledger, and record requests; return the ids of two requests."""
    evidence = {"kind": "WEB_FORM", "url": "https://demo.example/join", "ip": "203.0.113.9"}
    ledger.record(
        ORG,
        [
            ConsentDecision(people[0], "EMAIL", "MARKETING", "OPTED_IN", "API", None, evidence),
            ConsentDecision(people[1], "SMS", "ALL", "OPTED_OUT", "SMS_KEYWORD", None),
            ConsentDecision(
                *(people[2], "EMAIL", "MARKETING", "OPTED_OUT", "ADMIN", None),
                {"kind": "PHONE", "note": "called on Monday"},
                USER,
            ),
        ],
    )
    checks.begin(ORG, USER)
    verify_ledgers()
    now = clock.now()
    asked = {"note": "by email to privacy@demo.example"}
    export = requests.open_request(
        ORG, NewRequest("EXPORT", people[0], requested_at=now - timedelta(days=3), **asked), actor
    )
    requests.order(export, actor)
    answer_privacy_requests()
    late = NewRequest("ERASURE", people[1], requested_at=now - timedelta(days=31), **asked)
    requests.open_request(ORG, late, actor)
    new = NewRequest("ERASURE", people[2], requested_at=now - timedelta(days=1), **asked)
    return str(export.pk), str(requests.open_request(ORG, new, actor).pk)


def _send(caller: Caller, contact: str, channel: str, note: str, **fields: Any) -> None:
    body = {
        "channel": channel,
        "category": "TRANSACTIONAL",
        "to": [{"contactId": contact}],
        "template": {"name": "note", "language": "en_US"},
        "context": {"variables": {"note": note}},
        **fields,
    }
    accept(Call(caller, Submission(parse(MESSAGE, body)), "screenshots"))


def _work() -> None:
    """Send what is ready, by the simulator."""
    process = SendingProcess()
    for channel in Channel:
        while waiting := claims.ready(channel):
            for priority, organization_id in claims.choose(waiting):
                window = claims.claim(organization_id, channel, priority)
                deliver.deliver([window], outbound_transport(), process, receipts.apply)
