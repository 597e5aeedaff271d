"""What the request log is made of: a record of each REST request, until it is stored.

Requests wait for nothing: a record goes to a buffer of this process, and `rme.tenants.request_log`
stores what is there every second. Records that find the buffer full are dropped and counted; those
of a process that is killed are lost.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from rme.core.redis import counters

SIZE = 20_000
"""The most records that wait: of four seconds at 5,000 requests a second."""
LOST = "rme_request_log_lost_total"


class Details(NamedTuple):
    """What a response says of its request, besides the status."""

    code: str = ""
    """The code of its error."""
    message_id: str | None = None


NO_DETAILS = Details()


class RequestRecord(NamedTuple):
    """A request that was answered. It has no bodies, no query and no addresses."""

    organization_id: str
    application_id: int
    request_id: str
    method: str
    route: str
    """The path with the names of its parameters, like `/rme/v1/messages/{message_id}`."""
    status: int
    seconds: float
    at: int
    """Nanoseconds since 1970."""
    details: Details


class RecordBuffer:
    """The records of this process that are not stored yet."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.is_on = False
        """Whether records are stored by anybody; otherwise none are kept."""
        self._records: deque[RequestRecord] = deque()

    def add(self, records: Sequence[RequestRecord]) -> None:
        """Keep records as long as there is room."""
        room = max(0, self.size - len(self._records))
        self._records.extend(records[:room])
        if len(records) > room:
            counters.add(LOST, by=len(records) - room)

    def take(self, limit: int) -> list[RequestRecord]:
        """Remove and return the oldest records. One thread alone may call this."""
        count = min(limit, len(self._records))
        return [self._records.popleft() for _ in range(count)]


buffer = RecordBuffer()
