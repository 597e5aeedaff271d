"""The request log: REST requests by request id, for some days (REQUEST_LOG_DAYS).

Other packages use what stands here. `rme.asgi` starts the thread that stores what requests left in
`rme.core.http.request_records`.
"""

from rme.tenants.request_log.reader import RequestFilter, RequestPage, find
from rme.tenants.request_log.retention import drop_old, partition_periods
from rme.tenants.request_log.writer import start, store_pending

__all__ = [
    "RequestFilter",
    "RequestPage",
    "drop_old",
    "find",
    "partition_periods",
    "start",
    "store_pending",
]
