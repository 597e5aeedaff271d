"""Push services that refuse streams or go away: each message is sent once or in doubt."""

import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes

from messaging.models import Attempt
from tests.push.faults_scene import (
    PLATFORMS,
    REFUSED,
    Service,
    accept,
    account,
    attempts,
    once_each,
    people,
    send,
    settle,
    standing,
)
from tests.rest import work

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "long_waits")]


@pytest.mark.promise("push-answers-6")
@pytest.mark.parametrize("kind", PLATFORMS)
def test_streams_above_a_goaway_are_retried_and_lower_ones_unknown(api, org, worker, redis, kind):
    def go_away(connection, stream):
        if connection.number > 0:
            return None
        if len(service.server.seen) < 6:
            return True  # it keeps silent
        connection.h2.close_connection(last_stream_id=5)  # the first three
        return False

    with Service(kind, go_away) as service:
        send(api, org, worker, service, 6)
        assert standing() == {"UNKNOWN": 3, "ACCEPTED": 3}
        assert attempts()[REFUSED] == 3
        assert set(Attempt.objects.values_list("outcome", flat=True)) == {"Unknown", "Retryable"}
        settle(worker, redis, 6)
        assert once_each(service, 6)
        assert len(service.server.seen) == 12


@pytest.mark.parametrize("kind", PLATFORMS)
def test_graceful_goaway_loses_and_doubles_nothing(api, org, worker, redis, kind):
    def go_away(connection, stream):
        if connection.number > 0:
            return None
        if stream.id <= 5:
            service.take(connection, stream)
            return True
        if len(service.server.seen) == 6:
            connection.h2.close_connection(last_stream_id=5)
            return False
        return True

    with Service(kind, go_away) as service:
        send(api, org, worker, service, 6)
        assert standing() == {"SENT": 3, "ACCEPTED": 3}
        assert attempts() == {("Accepted", None): 3, REFUSED: 3}
        settle(worker, redis, 6)
        assert once_each(service, 6)


@pytest.mark.promise("push-sending-27")
@pytest.mark.parametrize("kind", PLATFORMS)
def test_lowered_stream_limit_is_respected(api, org, worker, kind):
    def lower(connection, stream):
        if stream.id == 1:
            connection.h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 2})

    with Service(kind, lower) as service:  # whoever opens a third ends the connection: h2 does
        account(org, kind, service.server.port)
        made = people(org, kind, service.server.port, 31)
        accept(api, made[:1])
        work(worker)
        accept(api, made[1:])
        work(worker)
        assert standing() == {"SENT": 31}
        assert attempts() == {("Accepted", None): 31}
        assert once_each(service, 31)


@pytest.mark.parametrize("kind", PLATFORMS)
def test_service_limited_to_one_stream_at_first_rejects_none(api, org, worker, kind):
    def raise_limit(connection, stream):
        if stream.id == 1:
            service.take(connection, stream)
            connection.h2.update_settings({SettingCodes.MAX_CONCURRENT_STREAMS: 1000})
            return True
        return None

    with Service(kind, raise_limit, {"max_concurrent_streams": 1}) as service:
        send(api, org, worker, service, 50)
        assert attempts() == {("Accepted", None): 50}
        assert once_each(service, 50)
        assert service.server.connections == 1


@pytest.mark.promise("push-answers-8")
@pytest.mark.parametrize("kind", PLATFORMS)
def test_refused_streams_are_retried(api, org, worker, redis, kind):
    def refuse(connection, stream):
        if len(service.server.seen) % 2 and len(service.server.seen) < 10:
            connection.h2.reset_stream(stream.id, ErrorCodes.REFUSED_STREAM)
            return True
        return None

    with Service(kind, refuse) as service:
        send(api, org, worker, service, 10)
        assert standing() == {"SENT": 5, "ACCEPTED": 5}
        assert attempts() == {("Accepted", None): 5, REFUSED: 5}
        settle(worker, redis, 10)
        assert once_each(service, 10)
