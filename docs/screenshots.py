"""Make the pictures of the documents: `make screenshots`, with Chromium on the PATH.

The service is started with a database of its own; what the pictures show is made by the functions
that REST and the console call. A new picture is a line of PICTURES. Arguments choose the pictures
whose names begin with one of them.
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
PORT = os.environ.get("PICTURES_PORT", "8765")
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
from messaging.console.access import Viewer  # noqa: E402
from messaging.console.actions import bulk_actions, tasks  # noqa: E402
from messaging.content import drafts, publishing  # noqa: E402
from messaging.content.files import archives, pull  # noqa: E402
from messaging.content.files.file_types import SourceFile  # noqa: E402
from messaging.content.links import PreferenceLink  # noqa: E402
from messaging.delivery import claims, deliver  # noqa: E402
from messaging.feedback import receipts  # noqa: E402
from messaging.models import (  # noqa: E402
    BulkAction,
    Delivery,
    Pause,
    ProviderAccount,
    SavedFilter,
    Suppression,
    Template,
)
from messaging.statistics import minutes  # noqa: E402
from rme import demo  # noqa: E402
from rme.core.channels import Channel  # noqa: E402
from rme.core.db import clock  # noqa: E402
from rme.core.http.parsing import parse  # noqa: E402
from rme.core.outbound import outbound_transport  # noqa: E402
from rme.tenants import organizations  # noqa: E402
from rme.tenants.access import invitations  # noqa: E402
from rme.tenants.audit import Actor  # noqa: E402
from rme.tenants.authentication import Caller  # noqa: E402
from rme.tenants.models import Invitation, Membership, Organization, User  # noqa: E402

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


def _rendered(page: Page) -> None:
    """Wait for the rendering, which follows the page."""
    page.frame_locator("iframe[name=studio-rendering]").locator("h1").wait_for()


def _import(page: Page) -> None:
    """Choose an archive, and let the page show what it would do."""
    page.set_input_files("input[type=file]", _archive())
    page.get_by_role("button", name="Show what it would do").click()
    page.get_by_text("A new draft").first.wait_for()


def _archive() -> Path:
    """Return the path of the archive that is imported."""
    return Path(os.environ["RME_VAR"]) / "templates.zip"


def pictures(found: dict[str, str]) -> list[Picture]:
    """Return the pictures; `found` has the ids of what they show."""
    messages, person = _console("messages"), _console("person", found["person"])
    failed = f"{messages}?status=FAILED"
    booking = _console("template", "booking")
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
        Picture("console-provider", _console("provider", found["account"]), height=1000),
        Picture("console-lanes", _console("providers"), height=1200),
        Picture("console-route", f"{_console('route')}?to=%2B41791234567", height=900),
        Picture("console-lanes-phone", _console("providers"), NARROW, dark=True),
        Picture("console-templates", _console("templates"), height=800),
        Picture("console-template", booking, height=1500, act=_rendered),
        Picture("console-template-phone", booking, NARROW, height=1400, act=_rendered),
        Picture("console-template-dark", booking, height=1200, dark=True, act=_rendered),
        Picture("console-compare", f"{_console('template_compare', 'booking')}?old=1&new=2"),
        Picture(
            "console-compare-phone",
            f"{_console('template_compare', 'booking')}?old=1&new=2",
            NARROW,
            dark=True,
        ),
        Picture("console-import", _console("template_import"), height=1000, act=_import),
        Picture("console-roles", reverse("roles"), height=1300),
        Picture("console-audit", _console("audit"), height=1000),
        Picture("console-audit-phone", _console("audit"), NARROW, dark=True),
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
    chosen = tuple(sys.argv[1:])
    call_command("migrate", verbosity=0)
    made = demo.ensure(Path(os.environ["RME_VAR"]) / "demo.json", base_url=URL)
    found = _fill(made)
    _write_archive()
    IMAGES.mkdir(exist_ok=True)
    workers = ["rme.workers", "--beat", "--concurrency", "1"]
    with processes([web("rme.asgi:application", int(PORT)), workers]):
        wait_for_port(int(PORT))
        with _chromium() as browser:
            time.sleep(SETTLED)
            cookies = _log_in(browser)
            for picture in pictures(found):
                if chosen and not picture.name.startswith(chosen):
                    continue
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
    _write_templates(Actor(user.pk, USER))
    caller = Caller(organizations.get(ORG), 1, user.pk, test=False)
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
    first = failed.latest("pk")
    delivered = Delivery.objects.filter(organization_id=ORG, status="DELIVERED", channel="EMAIL")
    return {
        "person": actors["bounce"],
        "failed": str(first.message_id),
        "delivered": str(delivered.earliest("pk").message_id),
        "suppression": str(Suppression.objects.filter(organization=row).latest("pk").pk),
        "action": str(action.pk),
        "account": str(account.pk),
        "colleague": str(colleague.pk),
        "token": PreferenceLink(ORG, people[0], "EMAIL", "MARKETING").token,
    }


BOOKING = """<h1>Your booking</h1>
<p>Dear {{ contact.first_name }},</p>
<p>we have booked <b>{{ session }}</b> for {{ seats }} on {{ day }}.</p>
<ul>
{% for item in items %}<li>{{ item }}</li>
{% endfor %}</ul>
<p><a href="{{ link }}">See your booking</a></p>
"""


def _write_templates(author: Actor) -> None:
    """Make a template with two versions, a draft in another language, and an SMS."""
    texts: dict[str, object] = {"subject": "Your booking of {{ session }}", "html": BOOKING}
    kinds = {"session": "string", "seats": "integer", "day": "string", "link": "string"}
    examples: dict[str, object] = {
        "session": "Opening keynote", "seats": 2, "day": "12 May", "link": "https://demo.example/b",
    }  # fmt: skip
    properties: dict[str, object] = {
        name: {"type": kind, "examples": [examples[name]]} for name, kind in kinds.items()
    }
    properties["items"] = {
        "type": "array", "items": {"type": "string"}, "examples": [["Badge", "Lunch"]],
    }  # fmt: skip
    texts["variables"] = {"type": "object", "properties": properties, "required": ["session"]}
    own = {"organization_id": ORG, "name": "booking", "category": "TRANSACTIONAL"}
    first = Template(**own, language="en_US", channel="EMAIL")
    old = BOOKING.replace("{{ session }}", "{{ title }}").replace("See your", "Open the")
    publishing.publish(drafts.add_template(first, author, {**texts, "html": old}), author)
    row = drafts.save(first, texts, author, drafts.Seen(1))
    publishing.publish(row, author)
    german = BOOKING.replace("Your booking", "Ihre Buchung").replace("Dear", "Guten Tag")
    drafts.add_template(
        Template(**own, language="de", channel="EMAIL"), author, {**texts, "html": german}
    )
    sms = {"text": "{{ org.name }}: {{ session }}, {{ day }}. {{ link }}"}
    drafts.add_template(Template(**own, language="en_US", channel="SMS"), author, sms)


def _write_archive() -> None:
    """Write the templates as files, one of them changed and one more."""
    files = dict(pull.pull(ORG))
    path = "booking/de.email.liquid"
    files["booking/en_GB.email.liquid"] = files[path].replace(b"Ihre Buchung", b"Your booking")
    files[path] = files[path].replace(b"Guten Tag", b"Liebe")
    with _archive().open("wb") as archive:
        archives.write((SourceFile(*each) for each in sorted(files.items())), archive)


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
    page.wait_for_url(f"{URL}/admin/", timeout=60_000)
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
    assert not picture.logged_in or "/login/" not in page.url, picture.path
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
