"""An SMSC for the tests of listeners."""

import pytest

from messaging.feedback import listeners
from tests.fakes.smsc import Smsc


@pytest.fixture
def smsc(settings):
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    with Smsc() as server:
        yield server
        listeners.stop()
