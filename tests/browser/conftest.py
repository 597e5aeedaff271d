"""A real Chromium, with and without JavaScript."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser import tabs
from tests.browser.journey import Journey, KeyboardJourney

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Return the browser; without one, tests that need it are reported as skipped."""
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH")
    # Playwright runs an event loop in this thread, in which Django would refuse its database. No
    # other test is to run beside that loop, so it ends with this folder's tests.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(params=[True, False], ids=["scripts", "no-scripts"])
def tab(request: pytest.FixtureRequest, chromium: Browser) -> Iterator[Page]:
    """Return a fresh tab; anything that the page could not load or do by its policy fails."""
    options = {"java_script_enabled": request.param, "locale": "en-GB", "viewport": tabs.PHONE}
    with tabs.opened(chromium, failed_requests=True, timeout=10_000, **options) as page:
        yield page


@pytest.fixture(params=[Journey, KeyboardJourney], ids=["mouse", "keyboard"])
def journey(request: pytest.FixtureRequest, tab: Page) -> Journey:
    """Return a person with a mouse, and in another run the same by keyboard alone."""
    made: Journey = request.param(tab)
    return made
