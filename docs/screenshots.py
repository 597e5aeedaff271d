"""Make the pictures of the documents: `make screenshots`, with Chromium on the PATH.

With names (`ARGS="console-home console-audit"`) only these are made.

The service is started with a database of its own; what the pictures show is made by the functions
that REST and the console call. A new picture is a line of PICTURES.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
PORT = "8765"
URL = f"http://127.0.0.1:{PORT}"
os.environ |= {
    "DJANGO_SETTINGS_MODULE": "rme.settings",
    "PORT": PORT,
    "BASE_URL": URL,
    "OIDC_URL": "https://login.demo.example",
    "OIDC_CLIENT_ID": "rme",
    "OIDC_CLIENT_SECRET": "secret",
}
sys.path.insert(0, str(ROOT))

import django  # noqa: E402

django.setup()

from django.core.management import call_command  # noqa: E402
from django.urls import reverse  # noqa: E402
from playwright.sync_api import Browser, Page, sync_playwright  # noqa: E402

from bench.scene import processes, wait_for_port, web  # noqa: E402
from messaging.accept import Call, Submission, accept  # noqa: E402
from messaging.accept.requests import MESSAGE  # noqa: E402
from messaging.consent import ledger  # noqa: E402
from messaging.consent.chain import checks  # noqa: E402
from messaging.consent.ledger import ConsentDecision  # noqa: E402
from messaging.consent.privacy import requests  # noqa: E402
from messaging.consent.privacy.requests import NewRequest  # noqa: E402
from messaging.consent.tasks import answer_privacy_requests, verify_ledgers  # noqa: E402
from messaging.console.access import Viewer  # noqa: E402
from messaging.console.actions import bulk_actions, tasks  # noqa: E402
from messaging.content.links import PreferenceLink  # noqa: E402
from messaging.delivery import claims, deliver  # noqa: E402
from messaging.feedback import receipts  # noqa: E402
from messaging.models import (  # noqa: E402
    BulkAction,
    CallbackLogEntry,
    CircuitChange,
    Delivery,
    Pause,
    ProviderAccount,
    SavedFilter,
    Suppression,
    WebhookDelivery,
    WebhookEndpoint,
)
from messaging.statistics import minutes  # noqa: E402
from messaging.webhooks import managed_endpoints  # noqa: E402
from messaging.webhooks.endpoint_inputs import EndpointInput  # noqa: E402
from rme import demo  # noqa: E402
from rme.core import ids  # noqa: E402
from rme.core.channels import Channel  # noqa: E402
from rme.core.db import clock  # noqa: E402
from rme.core.http import request_records  # noqa: E402
from rme.core.http.parsing import parse  # noqa: E402
from rme.core.http.request_records import Details, RequestRecord  # noqa: E402
from rme.core.outbound import outbound_transport  # noqa: E402
from rme.tenants import organizations, request_log  # noqa: E402
from rme.tenants.access import invitations  # noqa: E402
from rme.tenants.audit import Actor  # noqa: E402
from rme.tenants.authentication import Caller  # noqa: E402
from rme.tenants.models import (  # noqa: E402
    Application,
    Invitation,
    Membership,
    Organization,
    User,
)

ORG = "demo"
SETTLED = 10.0
"""Seconds until each worker has given a sign of life."""
USER, PASSWORD = "maria", "a picture of the console"
WIDE, NARROW = 1440, 390
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OPTIMIZER = ("pngquant", "--force", "--skip-if-larger", "--ext", ".png", "128")
"""Makes a picture's file small, where it is installed."""


@dataclass(frozen=True)
class Picture:
    """A page, and how it is shown. Address by address: `{}` is filled in from the demo's values."""

    name: str
    path: str
    width: int = WIDE
    height: int = 900
    dark: bool = False
    act: Callable[[Page], object] | None = None
    """What is done on the page before it is shown."""
    logged_in: bool = True


def _console(name: str, *args: str) -> str:
    return reverse(f"console:{name}", args=[ORG, *args])


def _platform(page: Page) -> None:
    page.select_option("[name=kind]", "odoo")
    page.select_option("[name=preset]", "odoo-community")


def pictures(found: dict[str, str]) -> list[Picture]:
    """Return the pictures; `found` has the ids of what they show."""
    messages, person = _console("messages"), _console("person", found["person"])
    failed = f"{messages}?status=FAILED"
    webhook = _console("webhook_delivery", found["endpoint"], found["webhook"])
    return [
        Picture("console-log-in", "/admin/", height=640, logged_in=False),
        Picture("console-home", "/admin/", height=1200),
        Picture("console-home-phone", "/admin/", NARROW, dark=True),
        Picture("console-first-steps", reverse("first_steps", args=[ORG]), height=640),
        Picture("console-search", f"{reverse('console:search')}?q=simulator", height=640),
        Picture("console-messages", messages),
        Picture("console-messages-dark", failed, dark=True),
        Picture("console-messages-phone", messages, NARROW),
        Picture("console-filters", _console("filters"), height=480),
        Picture("console-message", _console("message", found["failed"]), height=1000),
        Picture("console-message-phone", _console("message", found["delivered"]), NARROW),
        Picture("console-person", person, height=1200),
        Picture("console-person-dark", person, NARROW, dark=True),
        Picture("console-lift", _console("lift", found["suppression"]), height=420),
        Picture("console-resend", f"{_console('choose', 'resend')}?status=FAILED", height=420),
        Picture("console-action", _console("action", found["action"]), height=640),
        Picture("console-actions", _console("actions"), height=420),
        Picture("console-pause", f"{_console('pause')}?channel=SMS", height=420),
        Picture("console-review", f"{messages}?status=HELD", height=900),
        Picture("console-consent", _console("consent"), height=900),
        Picture("console-consent-phone", _console("consent"), NARROW, dark=True),
        Picture("console-ledger", _console("ledger"), height=900),
        Picture("console-privacy", _console("privacy"), height=640),
        Picture("console-erasure", _console("privacy_request", found["erasure"]), height=900),
        Picture("console-export", _console("privacy_request", found["export"]), NARROW),
        Picture("console-provider", _console("provider", found["account"]), height=1000),
        Picture("console-lanes", _console("providers"), height=1200),
        Picture("console-domains", _console("domains"), height=900),
        Picture("console-callbacks", _console("callbacks"), height=700),
        Picture("console-route", f"{_console('route')}?to=%2B41791234567", height=900),
        Picture("console-lanes-phone", _console("providers"), NARROW, dark=True),
        Picture("console-roles", reverse("roles"), height=1300),
        Picture("console-audit", _console("audit"), height=1000),
        Picture("console-audit-phone", _console("audit"), NARROW, dark=True),
        Picture("console-programs", _console("programs"), height=760),
        Picture("console-requests", _console("requests"), height=900),
        Picture("console-requests-phone", _console("requests"), NARROW, dark=True),
        Picture("console-webhooks", _console("webhook_deliveries", found["endpoint"]), height=900),
        Picture("console-webhook", webhook, height=1200),
        Picture("console-webhook-dark", webhook, NARROW, dark=True),
        Picture("console-compose", _console("compose"), height=1300),
        Picture("console-acting", reverse("acting_begin", args=[found["colleague"]]), height=560),
        Picture("console-invitations", "/admin/tenants/invitation/", height=480),
        Picture("console-second-factor", reverse("mfa_index"), height=800),
        Picture("console-sessions", reverse("usersessions_list"), height=480),
        Picture("platform", "/admin/crm/platform/add/", 1280, 1300, act=_platform),
        Picture("preferences", f"/p/{found['token']}", 720, 600, logged_in=False),
        Picture("unsubscribe", f"/p/u/{found['token']}", 720, 400, logged_in=False),
        Picture("push-demo", "/push-demo", 720, 600),
    ]


def main() -> None:
    """Fill a database, serve it, and save what its pages look like."""
    call_command("migrate", verbosity=0)
    made = demo.ensure(Path(os.environ["RME_VAR"]) / "demo.json", base_url=URL)
    found = _fill(made)
    IMAGES.mkdir(exist_ok=True)
    workers = ["rme.workers", "--beat", "--concurrency", "1"]
    with processes([web("rme.asgi:application", int(PORT)), workers]):
        wait_for_port(int(PORT))
        with _chromium() as browser:
            time.sleep(SETTLED)
            cookies = _log_in(browser)
            chosen = [
                each for each in pictures(found) if each.name in (sys.argv[1:] or [each.name])
            ]
            for picture in chosen:
                _save(browser, picture, cookies if picture.logged_in else [])


# --- what the pictures show ---------------------------------------------------------------------
def _fill(made: dict[str, Any]) -> dict[str, str]:
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
        "failed": str(first.message_id),
        "delivered": str(delivered.earliest("pk").message_id),
        "suppression": str(Suppression.objects.filter(organization=row).latest("pk").pk),
        "action": str(action.pk),
        "export": exported,
        "erasure": erased,
        "account": str(account.pk),
        "colleague": str(colleague.pk),
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
    return managed_endpoints.create(ORG, given, Actor(None, "the shop"))


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
    rows.update(status="DELIVERED", due_at=None, tries=1, attempts=[ok], tried_at=clock.now())
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
    for channel in Channel:
        while waiting := claims.ready(channel):
            for priority, organization_id in claims.choose(waiting):
                window = claims.claim(organization_id, channel, priority)
                deliver.deliver([window], outbound_transport(), receipts.apply)


# --- the browser --------------------------------------------------------------------------------
@contextmanager
def _chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


def _log_in(browser: Browser) -> Any:
    """Log in by the form; return the cookies."""
    context = browser.new_context(locale="en-GB")
    page = context.new_page()
    page.goto(f"{URL}/admin/")
    page.get_by_label("Username").fill(USER)
    page.locator("input[name=password]").fill(PASSWORD)
    page.get_by_role("button", name="Log in", exact=True).click()
    page.wait_for_load_state()
    cookies = context.cookies()
    context.close()
    return cookies


def _save(browser: Browser, picture: Picture, cookies: Any) -> None:
    """Save one picture, as a small file where a program for it is there."""
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        device_scale_factor=2 if picture.width < WIDE / 2 else 1,
        color_scheme="dark" if picture.dark else "light",
        locale="en-GB",
        timezone_id="Europe/Zurich",
    )
    context.add_cookies(cookies)
    page = context.new_page()
    answer = page.goto(f"{URL}{picture.path}")
    assert answer is not None, picture.path
    assert answer.status == 200, (picture.path, answer.status)
    page.evaluate("dark => document.documentElement.classList.toggle('dark', dark)", picture.dark)
    if picture.act:
        picture.act(page)
    page.wait_for_load_state("networkidle")
    file = IMAGES / f"{picture.name}.png"
    page.screenshot(path=file)
    context.close()
    if shutil.which(OPTIMIZER[0]):  # 98, 99: it would be no smaller, or no longer look the same
        code = subprocess.run([*OPTIMIZER, str(file)], check=False).returncode
        assert code in (0, 98, 99), code
    print(f"{file.relative_to(ROOT)} {file.stat().st_size // 1024} KiB", flush=True)


if __name__ == "__main__":
    main()
