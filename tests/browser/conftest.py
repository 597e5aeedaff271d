"""A real Chromium, with and without JavaScript."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright
from unfold import fields

from tests.browser import tabs
from tests.browser.journey import Journey, KeyboardJourney

CHROMIUM = shutil.which("chromium")
PAGES_ALONE = shutil.which("chromium-headless-shell") or CHROMIUM
"""The same browser without its own surface, of which a tab costs two thirds of the CPU time. It
shows no notifications."""
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(autouse=True, scope="package")
def _json_as_without_pygments() -> Iterator[None]:
    """Show JSON as the service does: Pygments, which adds style attributes, is pytest's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fields, "prettify_json", lambda value, encoder: None)
        yield


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """Return what launches browsers; without one, tests that need it are reported as skipped."""
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH")
    # Playwright runs an event loop in this thread, in which Django would refuse its database. No
    # other test is to run beside that loop, so it ends with this folder's tests.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    expect.set_options(timeout=tabs.WAIT_MILLISECONDS)
    with sync_playwright() as playwright:
        yield playwright
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="package")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """Return the browser."""
    with playwright.chromium.launch(executable_path=PAGES_ALONE, args=ARGUMENTS) as browser:
        yield browser


@pytest.fixture(scope="module")
def whole_chromium(playwright: Playwright) -> Iterator[Browser]:
    """Return the browser with its own surface."""
    with playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS) as browser:
        yield browser


@pytest.fixture(params=[True, False], ids=["scripts", "no-scripts"])
def tab(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Page]:
    """Return a fresh tab; anything that the page could not load or do by its policy fails."""
    options = {"java_script_enabled": request.param, "locale": "en-GB", "viewport": tabs.PHONE}
    with tabs.opened(chromium, failed_requests=True, **options) as page:
        yield page


@pytest.fixture(params=[Journey, KeyboardJourney], ids=["mouse", "keyboard"])
def journey(request: pytest.FixtureRequest, tab: Page) -> Journey:
    """Return a person with a mouse, and in another run the same by keyboard alone."""
    made: Journey = request.param(tab)
    return made
