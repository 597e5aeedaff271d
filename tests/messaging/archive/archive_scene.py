"""Messages of every kind that have ended, and the archive moving them."""

from datetime import timedelta

from messaging.archive import job
from messaging.models import (
    ArchiveFile,
    Attempt,
    Delivery,
    Event,
    Message,
    MessageContent,
)
from rme.core.db import clock
from tests.rest import Api, message, work

LATER = timedelta(days=100)
TABLES = (Message, Delivery, Attempt, Event)


def send(org, people, count=1):
    """Send messages and let them end; return their ids, oldest first."""
    api = Api(org)
    found = []
    for number in range(count):
        person = people[number % len(people)]
        found.append(api.send(message(person, metadata={"n": str(number)})).json()["messageId"])
    work()
    drop_contents()
    return found


def drop_contents():
    """Delete contents, as their retention does before anything is archived."""
    MessageContent.objects.all().delete()


def move():
    """Run the job as if 100 days had passed."""
    job.run(now=clock.now() + LATER, at_once=True)


def left():
    """Return the number of rows in each table."""
    return tuple(model.objects.count() for model in TABLES)


def live():
    return list(ArchiveFile.objects.filter(state="LIVE").order_by("pk"))


def states():
    return sorted(ArchiveFile.objects.values_list("state", flat=True))
