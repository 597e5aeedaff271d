"""The Celery app, the list of queues and the list of periodic tasks.

Tasks are hints: the sweeper finds their work in the database again. So Celery retries nothing, no
task has a countdown, and the loss of the broker costs seconds.
"""

import os
from signal import SIGKILL

from celery import Celery
from celery.signals import worker_process_init
from django.conf import settings
from kombu import Queue

from rme.core.process import memory
from rme.run.process import die_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")

app = Celery("rme", task_cls="rme.core.process.worker:WorkerTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
QUEUES = ("email", "sms", "push", "sweep", "webhooks", "default")
"""Each has a worker of its own, so that a slow channel does not delay others (`rme.workers`)."""
_ARGUMENTS = (
    {"x-queue-type": "quorum"} if settings.CELERY_TASK_DEFAULT_QUEUE_TYPE == "quorum" else None
)
app.conf.task_queues = [Queue(name, queue_arguments=_ARGUMENTS) for name in QUEUES]
app.conf.task_default_queue = "default"
# Hints do not expire: the time would be of beat's clock, and past for a worker with another clock.
# Those that an outage left behind are cheap instead (`rme.core.redis.hints`).
app.conf.beat_schedule = {
    "sweep": {"task": "messaging.sweep", "schedule": 1.0, "options": {"queue": "sweep"}},
    "retire_devices": {"task": "push.retire_devices", "schedule": 5.0},
    # The hourly tasks run once an hour; beat, which stores nothing, orders them more often.
    "sweep_devices": {"task": "push.sweep_devices", "schedule": 300.0},
    "housekeeping": {"task": "messaging.housekeeping", "schedule": 300.0},
    "contents": {"task": "messaging.drop_contents", "schedule": 300.0},
    "idempotency-keys": {"task": "messaging.purge_idempotency_keys", "schedule": 300.0},
    "callbacks": {"task": "messaging.apply_callbacks", "schedule": 2.0},
    "poll": {"task": "messaging.poll", "schedule": 5.0},
    "webhooks": {
        "task": "messaging.notify_endpoints",
        "schedule": 1.0,
        "options": {"queue": "webhooks"},
    },
    "imports": {"task": "messaging.import_suppressions", "schedule": 5.0},
    "ledger-checks": {"task": "messaging.verify_ledgers", "schedule": 15.0},
    "privacy-requests": {"task": "messaging.answer_privacy_requests", "schedule": 15.0},
    "domains": {"task": "messaging.check_sender_domains", "schedule": 300.0},
    "publish": {"task": "messaging.publish_templates", "schedule": 5.0},
    "bulk-actions": {"task": "messaging.run_bulk_actions", "schedule": 5.0},
    "record-imports": {"task": "crm.import_records", "schedule": 5.0},
    "count-minutes": {"task": "messaging.count_minutes", "schedule": 15.0},
}
app.conf.beat_scheduler = "rme.workers.beat:HintScheduler"
app.conf.worker_pool = "rme.workers.pool:Pool"
app.conf.worker_consumer = "rme.workers.consumer:Consumer"
# The last resort against tasks that hang. A task takes up to 5 s, half a lease and the timeout of a
# provider; a worker whose lease has ended can store nothing.
app.conf.task_soft_time_limit = 2 * settings.LEASE_SECONDS + 60
app.conf.task_time_limit = app.conf.task_soft_time_limit + 30
# These process whole tables, once an hour.
_HOUR = {"soft_time_limit": 3600, "time_limit": 3660, "at_most_every": 3500}
app.conf.task_annotations = {
    "messaging.sweep": {"at_most_every": 0.5, "proves_alive": "scheduler"},
    "messaging.notify_endpoints": {"at_most_every": 0.5},
    "messaging.poll": {"at_most_every": 2.5},
    "messaging.publish_templates": {"at_most_every": 2.5},
    "push.retire_devices": {"at_most_every": 2.5},
    "messaging.count_minutes": {"at_most_every": 7.0},
    "messaging.housekeeping": _HOUR,
    "messaging.check_sender_domains": {"at_most_every": 60.0},
    "messaging.drop_contents": {"at_most_every": 280.0},
    "messaging.purge_idempotency_keys": _HOUR,
    "push.sweep_devices": _HOUR,
}
MESSAGING = (
    "accept",
    "console.actions",
    "consent",
    "content",
    "delivery",
    "feedback",
    "housekeeping",
    "policy",
    "statistics",
    "webhooks",
)
app.autodiscover_tasks(
    [
        *(f"messaging.{each}" for each in MESSAGING),
        *("rme.crm", "rme.tenants.access"),
    ]
)
if settings.ARCHIVE is not None:
    app.conf.beat_schedule["archive"] = {"task": "messaging.archive", "schedule": 60.0}
    app.conf.task_annotations["messaging.archive"] = {"at_most_every": 50.0}
    app.autodiscover_tasks(["messaging.archive"])
app.autodiscover_tasks(["messaging.delivery"], related_name="worker_process")


@worker_process_init.connect
def _set_up_process(**_: object) -> None:
    memory.freeze_startup_objects()
    memory.keep_memory()
    die_with_parent(os.getppid(), SIGKILL)  # the lease of its batch ends by itself
