"""Make the pictures of the pages from the running demo: `make run`, then this."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import django
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def main() -> None:
    """Open the demo's pages (its first contact's, and the push demo); save what they look like."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")
    sys.path.insert(0, str(ROOT))
    django.setup()
    from messaging.content.links import PreferenceLink

    demo = _demo()
    token = PreferenceLink(demo["org"], demo["contact_ids"][0], "EMAIL", "MARKETING").token
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        page = browser.new_page(
            viewport={"width": 720, "height": 600}, device_scale_factor=2, locale="en-GB"
        )
        _save(page, f"{demo['auth_url']}/p/{token}", "preferences")
        _save(page, f"{demo['auth_url']}/p/u/{token}", "unsubscribe")
        _log_in(page, demo)
        _save(page, f"{demo['auth_url']}/push-demo", "push-demo")
        _platform(browser.new_page(viewport={"width": 1280, "height": 1300}), demo)
        browser.close()


def _platform(page: Page, demo: dict[str, str]) -> None:
    """Show the form of a platform, with Odoo chosen; nothing is saved."""
    _log_in(page, demo)
    page.goto(f"{demo['admin_url']}crm/platform/add/")
    page.select_option("[name=kind]", "odoo")
    page.select_option("[name=preset]", "odoo-community")
    page.screenshot(path=IMAGES / "platform.png")


def _demo() -> dict[str, str]:
    said = subprocess.run(
        [sys.executable, "-m", "rme.run", "demo-json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, str] = json.loads(said.stdout)
    return found


def _log_in(page: Page, demo: dict[str, str]) -> None:
    page.goto(demo["admin_url"])
    page.get_by_label("Username").fill(demo["admin_user"])
    page.locator("input[name=password]").fill(demo["admin_password"])
    page.get_by_role("button", name="Log in").click()
    page.wait_for_load_state()


def _save(page: Page, address: str, name: str) -> None:
    page.goto(address)
    page.screenshot(path=IMAGES / f"{name}.png", full_page=True)


if __name__ == "__main__":
    main()
