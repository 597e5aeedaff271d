"""A host that answers well, but late, has all its connections in use."""

import time

import pytest

from messaging.delivery import claims, deliver
from messaging.delivery.accounts import concurrency
from messaging.domain.accounts.admission import WINDOW
from messaging.feedback import receipts
from messaging.models import Attempt
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.slow_smtp import SlowSmtp
from tests.messaging.delivery.slow_scene import impatient, limit, mail_by, process
from tests.rest import message

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("impatient")]
__all__ = ["impatient", "process"]


def test_slow_host_may_use_the_connections_of_several_threads(api, org, process, settings):
    """A thread has ten connections to a host, and a process twenty."""
    transport = Transport(AddressPolicy(["127.0.0.1"]))
    with SlowSmtp(lambda recipient: True) as server:
        account_id = mail_by(server, org)
        api.bulk([message(person) for person in factories.contacts(org, 100)])
        found = []
        for _ in range(4):
            settings.PATIENCE_SECONDS = 0.5
            claim = claims.claim(org.pk, "EMAIL", 0, WINDOW)
            deliver.deliver([claim], transport, process, receipts.apply)
            time.sleep(settings.PATIENCE_SECONDS)
            hanging = Attempt.objects.filter(outcome=None).count()
            found.append((hanging, limit(process, account_id)))
            server.go.set()
            assert process.late_outcomes.finish(10)
            server.go.clear()
    transport.close()
    assert found == [(10, 1), (11, 11), (20, 20), (20, concurrency.SLOW_LIMIT)]
