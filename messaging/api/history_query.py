"""The query of the history, as callers write it."""

from typing import Annotated

from messaging.api.outputs.messages import StatusName as KnownStatus
from rme.core.http.fields import CategoryName, ChannelName, Instant, RecordId, Upper
from rme.core.http.queries import Cursor, Limit, Query

StatusName = Annotated[KnownStatus, Upper]


class HistoryQuery(Query):
    """The query of GET /messages."""

    contact_id: RecordId | None = None
    since: Instant | None = None
    until: Instant | None = None
    status: StatusName | None = None
    channel: ChannelName | None = None
    category: CategoryName | None = None
    limit: Limit = 50
    cursor: Cursor | None = None
