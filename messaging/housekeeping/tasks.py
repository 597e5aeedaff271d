"""The hourly task: it deletes what has expired, and creates and drops partitions."""

from celery import shared_task

from messaging.delivery import accounts
from messaging.feedback import callback_log, callbacks, sms_parts, tracking
from messaging.models import partition_periods
from messaging.statistics import minutes
from messaging.store import retention
from messaging.store.feedback import references
from messaging.webhooks import delivery_log
from rme.core.db import availability, clock, partitions
from rme.tenants.access.limits import guess_limits, single_use
from rme.tenants.audit import request_log
from rme.tenants.oauth import applications, tokens


@shared_task(name="messaging.housekeeping")
@availability.unlimited()
def housekeeping() -> None:
    """Delete what has expired, create the partitions of the time ahead, drop old ones."""
    callbacks.purge()
    callback_log.purge()
    accounts.purge_history()
    sms_parts.purge()
    references.purge()
    tracking.purge()
    delivery_log.purge()
    minutes.purge()
    single_use.purge()
    guess_limits.purge()
    tokens.purge()
    applications.delete_expired_secrets()
    for table, period in {**partition_periods(), **request_log.partition_periods()}.items():
        partitions.create_ahead([table], now=clock.now(), period=period)
    request_log.drop_old(now=clock.now())
    retention.apply(now=clock.now())
