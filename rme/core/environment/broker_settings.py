"""`CELERY_QUEUE_TYPE`: the type of RabbitMQ's queues."""

from collections.abc import Mapping

from django.core.exceptions import ImproperlyConfigured

CLASSIC, QUORUM = "classic", "quorum"


def queue_type(env: Mapping[str, str], url: str) -> str:
    """Return the type of the queues. Raises ImproperlyConfigured, naming the variable."""
    value = env.get("CELERY_QUEUE_TYPE", CLASSIC).strip().lower()
    if value not in (CLASSIC, QUORUM):
        raise ImproperlyConfigured(f"CELERY_QUEUE_TYPE={value}: it is {CLASSIC} or {QUORUM}.")
    if value == QUORUM and not url.startswith(("amqp://", "amqps://", "pyamqp://")):
        raise ImproperlyConfigured(
            "CELERY_QUEUE_TYPE=quorum needs RabbitMQ: set CELERY_BROKER_URL to amqp://…"
        )
    return value
