"""Requests that wait in the router while their organization is paused.

The sender of a provider callback or a one-click unsubscribe may not repeat it, and a person does
not expect an error page. A cell has stored nothing of a request that it answers so, and it would
store a callback once, however often it comes.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from rme.cells.router.heads import Head
from rme.cells.signatures import PAUSED_HEADER

STEP_SECONDS = 0.25
PATHS = ("/hooks/", "/p/")
"""Provider callbacks, and the pages of preferences, with their one-click unsubscribe."""


def is_held(head: Head) -> bool:
    """Return whether a request waits for the end of a pause."""
    return head.path.startswith(PATHS)


def is_paused(response: aiohttp.ClientResponse) -> bool:
    """Return whether a cell answers that the organization is paused."""
    return response.status == 503 and PAUSED_HEADER in response.headers


class Held:
    """The requests of a process that wait."""

    def __init__(self, limit: int) -> None:
        self.limit, self.count = limit, 0

    @contextmanager
    def place(self) -> Iterator[bool]:
        """Count a request that waits; yield whether there is room for it."""
        has_place = self.count < self.limit
        self.count += has_place
        try:
            yield has_place
        finally:
            self.count -= has_place
