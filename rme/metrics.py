"""`/metrics` in Prometheus's text format, for requests from this machine or with the token.

A web process shows what the processes of its machine have counted (`rme.core.telemetry.meters`),
the backlog, which it reads from PostgreSQL, and whether the parts of the service work. A worker's
own port shows what was counted there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from secrets import compare_digest
from urllib.parse import urlsplit

import structlog
from celery import current_app
from django.conf import settings
from django.db import Error
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import split_domain_port
from django.views.decorators.http import require_safe
from prometheus_client.core import CollectorRegistry, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from redis import RedisError

from messaging.reports import checks, metrics
from rme.core.db import availability
from rme.core.errors import ApiError
from rme.core.http import edge, request_records
from rme.core.http.forwarded import is_loopback
from rme.core.process import worker
from rme.core.redis import heartbeats
from rme.core.redis.connection import redis_client
from rme.core.telemetry import meters, process_gauges
from rme.core.telemetry.meters import Labels, Meter

log = structlog.get_logger(__name__)

FROM_THE_START: Mapping[Meter, Sequence[Labels]] = {
    request_records.LOST: [()],
    availability.FAILURES: [(kind,) for kind in availability.FAILURE_KINDS],
    process_gauges.POOL_ERRORS: [(process_gauges.WEB,), (process_gauges.WORKER,)],
    process_gauges.QUEUE_WORKERS: [(queue,) for queue in sorted(current_app.amqp.queues)],
    worker.TASKS: [
        (entry["task"], outcome)
        for entry in current_app.conf.beat_schedule.values()
        for outcome in ("succeeded", "failed")
    ],
}
"""Series that are there before they have counted: their first increase is to be seen."""
GAUGES = "rme:gauges"
"""The key in Redis of the gauges that a process has read from the database, as text."""
SHARED_SECONDS = 10.0
"""How long they are shared: less than the interval of scrapes, so that each shows new ones."""


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Return the metrics; 404 for all but this machine and holders of the token."""
    return _show(request, _text)


@require_safe
def show_processes(request: HttpRequest) -> HttpResponse:
    """Return what the processes of this machine have counted; 404 likewise."""
    return _show(request, _counted)


def _show(request: HttpRequest, text: Callable[[], bytes]) -> HttpResponse:
    if not (_is_local(request) or _has_token(request)):
        raise Http404
    return HttpResponse(text(), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def _is_local(request: HttpRequest) -> bool:
    """Return whether a request came from this machine, and not through a proxy on it.

    A proxy adds a header, or passes on the Host that its client sent. Some do neither, so a
    deployment with a public BASE_URL trusts no request by its address.
    """
    public_name = urlsplit(settings.BASE_URL).hostname or ""
    if settings.TLS_PROXY or edge.is_forwarded(request.META) or not _is_here(public_name):
        return False
    name = split_domain_port(request.headers.get("Host", ""))[0].strip("[]")
    return edge.is_from_here(request) and _is_here(name)


def _is_here(host: str) -> bool:
    """Return whether a host name or address is this machine's loopback."""
    return host == "localhost" or is_loopback(host)


def _has_token(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    expected = settings.METRICS_TOKEN.encode()
    sent = token.strip().encode("utf-8", "replace")
    return bool(expected) and scheme.lower() == "bearer" and compare_digest(sent, expected)


def render_error(request: HttpRequest, error: ApiError) -> HttpResponse:
    return HttpResponse(f"{error.message}\n", status=error.status, content_type="text/plain")


class _Families:
    """Metrics that were read before (prometheus_client's collector)."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Sequence[Metric]:
        return self._families


def _as_text(families: Iterable[Metric]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(families))
    return generate_latest(registry)


def _text() -> bytes:
    """Return the metrics of the parts that answer; `rme_up` is 0 for the others."""
    up = GaugeMetricFamily("rme_up", "Whether a part of the service works.", labels=["part"])
    gauges = b""
    is_up = _database_answers()
    up.add_metric(["database"], is_up)
    if is_up:
        gauges = _gauges()
        up.add_metric(["gauges"], bool(gauges))
    up.add_metric(["broker"], checks.broker_answers())
    try:
        works = any(each.works for each in heartbeats.read())
        (scheduler,) = heartbeats.are_alive(("scheduler",))
        up.add_metric(["redis"], 1)
        up.add_metric(["workers"], works)
        up.add_metric(["scheduler"], scheduler)
    except RedisError:
        up.add_metric(["redis"], 0)
    return _as_text([up]) + gauges + _counted()


def _database_answers() -> bool:
    """Return whether the database answers a statement of its own: a slow gauge is no outage."""
    try:
        with availability.within(checks.DATABASE_SECONDS):
            availability.is_read_only()
    except Error:
        return False
    return True


def _gauges() -> bytes:
    """Return the gauges of the database as text; nothing if one of them takes too long.

    Processes that are scraped one after the other share what one has read, by Redis. A failure is
    shared too: a database that is slow is not asked again by each.
    """
    try:
        cached = redis_client().get(GAUGES)
    except RedisError:
        return _read_gauges()
    if isinstance(cached, bytes):
        return cached
    text = _read_gauges()
    with suppress(RedisError):
        redis_client().set(GAUGES, text, px=int(SHARED_SECONDS * 1000))
    return text


def _read_gauges() -> bytes:
    try:
        with availability.within(settings.DATABASE_SECONDS):
            return _as_text(metrics.collect())
    except Error as error:
        log.warning("metrics.gauges_missing", error=type(error).__name__)
        return b""


def _counted() -> bytes:
    for meter, series in FROM_THE_START.items():
        for labels in series:
            meter.show(labels)
    return _as_text(meters.read())
