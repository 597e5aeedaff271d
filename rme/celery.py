"""The Celery app, THE list of queues and THE list of periodic jobs.

Tasks are hints: whatever they would do is found again in the database by the sweep. So nothing is
retried by Celery, no task has a countdown, and a lost broker costs seconds.
"""

import os

from celery import Celery
from celery.signals import worker_process_init
from django.conf import settings
from kombu import Queue

from rme.core import garbage

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")

app = Celery("rme", task_cls="rme.core.worker:WorkerTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [
    Queue("email"),
    Queue("sms"),
    Queue("push"),
    Queue("default"),
]
app.conf.task_default_queue = "default"
app.conf.beat_schedule = {
    "sweep": {"task": "messaging.sweep", "schedule": 1.0, "options": {"expires": 5}},
    "retire_devices": {
        "task": "push.retire_devices",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "sweep_devices": {"task": "push.sweep_devices", "schedule": 3600.0},
    "housekeeping": {"task": "messaging.housekeeping", "schedule": 3600.0},
    "callbacks": {
        "task": "messaging.apply_callbacks",
        "schedule": 2.0,
        "options": {"expires": 5},
    },
    "poll": {
        "task": "messaging.poll",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "webhooks": {
        "task": "messaging.notify_endpoints",
        "schedule": 1.0,
        "options": {"expires": 5},
    },
    "imports": {
        "task": "messaging.import_suppressions",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "record-imports": {
        "task": "crm.import_records",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
}
# The last resort, for what hangs and no time-out of its own ends. A task goes on for a turn of 5 s,
# half a lease and the time-out of a provider; a worker whose lease has ended does nothing of use.
app.conf.task_soft_time_limit = 2 * settings.LEASE_SECONDS + 60
app.conf.task_time_limit = app.conf.task_soft_time_limit + 30
# These go through whole tables, once an hour.
_HOUR = {"soft_time_limit": 3600, "time_limit": 3660}
app.conf.task_annotations = {"messaging.housekeeping": _HOUR, "push.sweep_devices": _HOUR}
app.autodiscover_tasks(["messaging", "push", "rme.crm"])


@worker_process_init.connect
def _spare(**_: object) -> None:
    garbage.spare()
    garbage.keep_memory()
