"""Make the pictures of the documents: `make screenshots`, with Chromium on the PATH.

With names (`ARGS="console-home console-audit"`) only these are made.

The service is started with a database of its own; what the pictures show is made by the functions
that REST and the console call. A new picture is a line of PICTURES.
"""

import base64
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
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

import django

django.setup()

from django.core.management import call_command
from django.urls import reverse
from playwright.sync_api import Browser, FilePayload, Page, sync_playwright

from bench.scene import processes, wait_for_port, web
from docs.picture_scene import ORG, PASSWORD, USER, fill
from docs.picture_templates import archive_path, write_archive, write_templates
from rme import demo
from rme.tenants.audit import Actor

SETTLED = 10.0
"""Seconds until each worker has given a sign of life."""
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
OPTIMIZER = ("pngquant", "--force", "--skip-if-larger", "--nofs", "--ext", ".png", "128")
"""Makes a picture's file small, where it is installed."""
SHEET = """<style>body {{ margin: 0; padding: 16px; background: #94a3b8; display: grid;
grid-template-columns: 1080px 312px; gap: 16px }} img {{ width: 100%; height: 676px }}</style>
{images}"""
"""A page of four pictures: on a desktop and on a phone, light and dark."""


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
    is_sheet: bool = False
    """Whether it shows the page four times: on a desktop and on a phone, light and dark."""


def _console(name: str, *args: str) -> str:
    return reverse(f"console:{name}", args=[ORG, *args])


def _platform(page: Page) -> None:
    page.select_option("[name=kind]", "odoo")
    page.select_option("[name=preset]", "odoo-community")


def _rendered(page: Page) -> None:
    """Wait for the rendering, which follows the page."""
    page.frame_locator("iframe[name=studio-rendering]").locator("h1").wait_for()


def _preview(page: Page) -> None:
    """Fill in the recipient, and let the page show the message."""
    page.get_by_label("Recipient").fill("olivia.reyes@people.rme.test")
    page.get_by_label("Template", exact=True).select_option("EMAIL booking")
    page.get_by_role("button", name="Preview").wait_for()
    for field in page.locator("#send-variables :is(input, textarea)").all():
        field.fill(field.get_attribute("placeholder") or "A-17")
    for field in page.locator("#send-variables select").all():
        field.select_option(index=1)
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("heading", name="Preview").wait_for()


def _import(page: Page) -> None:
    """Choose an archive, and let the page show what it would do."""
    page.set_input_files("input[type=file]", archive_path())
    page.get_by_role("button", name="Show the changes").click()
    page.get_by_text("New draft").first.wait_for()


def _upload(page: Page) -> str:
    """Upload a file of contacts with odd rows; return the address of the page that checks it."""
    lines = ["Kd-Nr;Nachname;Vorname;E-Mail-Adresse;Natel;Sprache"]
    for number in range(400):
        name = "" if number % 100 == 0 else f"Müller {number}"
        digits = f"+41 79 {number % 100 + 200} {number % 90 + 10} 00"
        phone = "unbekannt" if number % 50 == 1 else digits
        language = "Deutsch" if number % 4 == 2 else "de-CH"
        lines.append(f"{number};{name};Zoë;p{number}@people.rme.test;{phone};{language}")
    text = "\r\n".join(lines).encode("cp1252")
    page.goto(f"{URL}{reverse('admin:crm_contact_new_import')}")
    file = FilePayload(name="kunden.csv", mimeType="text/csv", buffer=text)
    page.set_input_files("input[type=file]", file)
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("row", name="Skip as bad").wait_for()
    return page.url.removeprefix(URL)


def pictures(found: dict[str, str]) -> list[Picture]:
    """Return the pictures; `found` has the ids of what they show."""
    messages, person = _console("messages"), _console("person", found["person"])
    booking = _console("template", "booking")
    webhook = _console("webhook_delivery", found["endpoint"], found["webhook"])
    return [
        Picture("console-log-in", "/admin/", height=640, logged_in=False),
        Picture("console-home", "/admin/", height=1200),
        Picture("console-first-steps", reverse("first_steps", args=[ORG]), height=640),
        Picture("console-search", f"{reverse('search')}?q=simulator", height=640),
        Picture("console-messages", messages),
        Picture("console-filters", _console("filters"), height=480),
        Picture("console-message", _console("message", found["failed"]), height=1000),
        Picture("console-person", person, height=1200),
        Picture("console-lift", _console("lift", found["suppression"]), height=420),
        Picture("console-contacts", _console("contacts"), height=900),
        Picture("console-contact", _console("contact_edit", found["person"]), height=700),
        Picture("console-merge", f"{_console('contacts_merge')}?{found['twins']}", height=700),
        Picture("console-suppressions", _console("suppressions"), height=700),
        Picture("console-suppression", _console("suppression", found["suppression"]), height=640),
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
        Picture("console-domains", _console("domain", found["domain"]), height=1200),
        Picture("console-callbacks", _console("callbacks"), height=700),
        Picture("console-route", f"{_console('route')}?to=%2B41791234567", height=900),
        Picture("console-templates", _console("templates"), height=800),
        Picture("console-template", booking, height=1500, act=_rendered),
        Picture("console-compare", f"{_console('template_compare', 'booking')}?old=1&new=2"),
        Picture(
            "console-compare-phone",
            f"{_console('template_compare', 'booking')}?old=1&new=2",
            NARROW,
            dark=True,
        ),
        Picture("console-partial", _console("partial", "footer"), height=900),
        Picture("console-partial-phone", _console("partial", "footer"), NARROW, dark=True),
        Picture("console-send", _console("send"), height=1000, act=_preview),
        Picture("console-import", _console("template_import"), height=1000, act=_import),
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
        Picture("console-invitations", _console("team"), height=480),
        Picture("console-second-factor", reverse("mfa_index"), height=800),
        Picture("console-sessions", reverse("usersessions_list"), height=480),
        Picture("page-home", "/admin/", is_sheet=True),
        Picture("page-messages", messages, is_sheet=True),
        Picture("page-message", _console("message", found["failed"]), is_sheet=True),
        Picture("page-person", person, is_sheet=True),
        Picture("page-contacts", _console("contacts"), is_sheet=True),
        Picture("page-suppressions", _console("suppressions"), is_sheet=True),
        Picture("page-import", found["import"], is_sheet=True),
        Picture("page-send", _console("send"), act=_preview, is_sheet=True),
        Picture("page-template", booking, act=_rendered, is_sheet=True),
        Picture("page-lanes", _console("providers"), is_sheet=True),
        Picture("page-provider", _console("provider", found["account"]), is_sheet=True),
        Picture("page-route", f"{_console('route')}?to=%2B41791234567", is_sheet=True),
        Picture("page-team", _console("team"), is_sheet=True),
        Picture("page-security", reverse("mfa_index"), is_sheet=True),
        Picture("platform", "/admin/crm/platform/add/", 1280, 1300, act=_platform),
        Picture("preferences", f"/p/{found['token']}", 720, 600, logged_in=False),
        Picture("unsubscribe", f"/p/u/{found['token']}", 720, 400, logged_in=False),
        Picture("push-demo", "/push-demo", 720, 600),
    ]


def main() -> None:
    """Fill a database, serve it, and save what its pages look like."""
    call_command("migrate", verbosity=0)
    made = demo.ensure(Path(os.environ["RME_VAR"]) / "demo.json", base_url=URL)
    found = fill(made)
    write_templates(Actor(None, USER))
    write_archive()
    IMAGES.mkdir(exist_ok=True)
    workers = ["rme.workers", "--beat", "--concurrency", "1"]
    with processes([web("rme.asgi:application", int(PORT)), workers]):
        wait_for_port(int(PORT))
        with _chromium() as browser:
            time.sleep(SETTLED)
            cookies = _log_in(browser)
            with _tab(browser, Picture("import", ""), cookies) as page:
                found["import"] = _upload(page)
            for picture in pictures(found):
                if picture.name in (sys.argv[1:] or [picture.name]):
                    _save(browser, picture, cookies if picture.logged_in else [])


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
    page.wait_for_url(f"{URL}/admin/")
    cookies = context.cookies()
    context.close()
    return cookies


@contextmanager
def _tab(browser: Browser, picture: Picture, cookies: Any) -> Iterator[Page]:
    """Open a tab as wide and as dark as a picture."""
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        device_scale_factor=2 if picture.width < WIDE / 2 else 1,
        color_scheme="dark" if picture.dark else "light",
        locale="en-GB",
        timezone_id="Europe/Zurich",
    )
    context.add_cookies(cookies)
    yield context.new_page()
    context.close()


def _shoot(browser: Browser, picture: Picture, cookies: Any) -> bytes:
    """Return a page's picture."""
    with _tab(browser, picture, cookies) as page:
        answer = page.goto(f"{URL}{picture.path}")
        assert answer is not None, picture.path
        assert answer.status == 200, (picture.path, answer.status)
        assert not picture.logged_in or "/login/" not in page.url, picture.path
        dark = picture.dark
        page.evaluate("dark => document.documentElement.classList.toggle('dark', dark)", dark)
        if picture.act:
            picture.act(page)
        page.wait_for_load_state("networkidle")
        return page.screenshot()


def _shoot_sheet(browser: Browser, picture: Picture, cookies: Any) -> bytes:
    """Return four pictures of a page as one."""
    shots = [
        _shoot(browser, replace(picture, width=width, height=height, dark=dark), cookies)
        for dark in (False, True)
        for width, height in ((WIDE, 900), (NARROW, 844))
    ]
    sources = [f"data:image/png;base64,{base64.b64encode(shot).decode()}" for shot in shots]
    with _tab(browser, picture, []) as page:
        page.set_content(SHEET.format(images="".join(f'<img src="{each}">' for each in sources)))
        page.wait_for_function("[...document.images].every(image => image.complete)")
        return page.screenshot(full_page=True)


def _save(browser: Browser, picture: Picture, cookies: Any) -> None:
    """Save one picture, as a small file where a program for it is there."""
    shoot = _shoot_sheet if picture.is_sheet else _shoot
    file = IMAGES / f"{picture.name}.png"
    file.write_bytes(shoot(browser, picture, cookies))
    if shutil.which(OPTIMIZER[0]):  # 98, 99: it would be no smaller, or no longer look the same
        code = subprocess.run([*OPTIMIZER, str(file)], check=False).returncode
        assert code in (0, 98, 99), code
    print(f"{file.relative_to(ROOT)} {file.stat().st_size // 1024} KiB", flush=True)


if __name__ == "__main__":
    main()
