"""`/metrics` of the router, in Prometheus's text format.

With several processes (`ROUTER_WORKERS`) prometheus_client adds up what each has written to
files in `PROMETHEUS_MULTIPROC_DIR`, which `python -m rme.cells.router` makes.
"""

import os
from secrets import compare_digest

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector

from rme.cells.router.environment import Settings
from rme.cells.router.heads import Head
from rme.core.http.forwarded import is_loopback

__all__ = ["CONTENT_TYPE_PLAIN_0_0_4", "LOOK_UPS", "REFUSED", "REQUESTS", "SECONDS", "UP"]

_own = CollectorRegistry()
REQUESTS = Counter("rme_router_requests", "Answers of cells.", ["cell", "status"], registry=_own)
REFUSED = Counter("rme_router_refused", "Answers of the router's own.", ["reason"], registry=_own)
LOOK_UPS = Counter("rme_router_look_ups", "Keys that were looked up.", ["kind"], registry=_own)
SECONDS = Histogram(
    "rme_router_seconds",
    "From the head of a request to the head of its answer.",
    ["cell"],
    registry=_own,
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
UP = Gauge(
    "rme_router_cell_up",
    "Whether a cell answers.",
    ["cell"],
    registry=_own,
    # That of the process which asked last: the others learn late that a cell is back.
    multiprocess_mode="mostrecent",
)


def text() -> bytes:
    """Return the metrics of all processes."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(_own)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return generate_latest(registry)


def may_read(head: Head, settings: Settings) -> bool:
    """Return whether a request may read them: by the token, or from this machine."""
    token, bearer = settings.metrics_token.encode(), head.bearer.encode("utf-8", "replace")
    if token and compare_digest(bearer, token):
        return True
    if settings.tls_proxy or not is_loopback(head.peer):
        return False
    if any(name.startswith((b"x-forwarded", b"forwarded", b"via")) for name, _ in head.headers):
        return False
    host = head.by_name.get("host", "").rpartition(":")[0] or head.by_name.get("host", "")
    return host == "localhost" or is_loopback(host.strip("[]"))
