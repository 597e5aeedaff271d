"""The hourly task: it deletes what has expired, and creates and drops partitions."""

from celery import shared_task

from messaging.consent import retention
from messaging.delivery import accounts
from messaging.feedback import (
    callback_log,
    callbacks,
    provider_references,
    sms_parts,
    tracking,
)
from messaging.models import partition_periods
from messaging.statistics import minutes
from messaging.webhooks import delivery_log
from rme.core.db import availability, clock, partitions
from rme.tenants import applications, request_log
from rme.tenants.oauth import assertions, tokens


@shared_task(name="messaging.housekeeping")
@availability.unlimited()
def housekeeping() -> None:
    """Delete what has expired, create the partitions of the time ahead, drop old ones."""
    callbacks.purge()
    callback_log.purge()
    accounts.purge_history()
    sms_parts.purge()
    provider_references.purge()
    tracking.purge()
    delivery_log.purge()
    minutes.purge()
    assertions.purge()
    tokens.purge()
    applications.delete_expired_secrets()
    for table, period in {**partition_periods(), **request_log.partition_periods()}.items():
        partitions.create_ahead([table], now=clock.now(), period=period)
    request_log.drop_old(now=clock.now())
    retention.apply(now=clock.now())
