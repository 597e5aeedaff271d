"""Tabs of a real Chromium that leave nothing behind: no request, and no error that no test saw."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page

DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
LEAVE_SECONDS = 30.0
WAIT_MILLISECONDS = 60_000
"""How long a tab waits for what a test expects: long enough on a busy machine."""
LOAD_FAILED = "Failed to load resource"
"""How Chromium's console begins what it writes of a response that is no success."""


@contextmanager
def opened(
    chromium: Browser,
    *,
    allows: str = "",
    failed_requests: bool = False,
    cookie: dict[str, str] | None = None,
    **options: Any,
) -> Iterator[Page]:
    """Yield a new tab; what its console calls an error fails the test, as do a script's errors.

    Args:
        allows: the beginning of entries of the console that are no fault.
        failed_requests: whether a request without a response is a fault as well.
        cookie: a cookie that the tab has from the start.
        options: what Chromium's context takes.
    """
    context = chromium.new_context(**options)
    if cookie:
        context.add_cookies([cookie])  # type: ignore[list-item]  # its keys are optional there
    page = context.new_page()
    page.set_default_timeout(WAIT_MILLISECONDS)
    problems: list[str] = []
    asked: set[object] = set()
    page.on("console", lambda entry: problems.append(entry.text) if entry.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    if failed_requests:
        page.on("requestfailed", lambda failed: problems.append(failed.url))
    # Playwright takes functions alone, and no methods of built-in classes.
    page.on("request", lambda request: asked.add(request))
    page.on("requestfinished", lambda request: asked.discard(request))
    page.on("requestfailed", lambda request: asked.discard(request))
    yield page
    _until(lambda: not asked, lambda: page.wait_for_timeout(10))
    context.close()
    served()
    assert [each for each in problems if not allows or not each.startswith(allows)] == []


def served() -> None:
    """Wait until the live server has answered what browsers have asked: the tables are emptied."""
    _until(lambda: not any("process_request" in each.name for each in threading.enumerate()))


def _until(
    is_done: Callable[[], bool], pause: Callable[[], None] = lambda: time.sleep(0.005)
) -> None:
    end = time.monotonic() + LEAVE_SECONDS
    while not is_done() and time.monotonic() < end:
        pause()
