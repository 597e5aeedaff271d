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


@pytest.mark.parametrize("kind", PLATFORMS)
def test_streams_above_a_goaway_go_again_and_those_below_are_in_doubt(
    api, org, worker, redis, kind
):
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
def test_a_service_that_goes_away_in_order_loses_and_doubles_nothing(api, org, worker, redis, kind):
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


@pytest.mark.parametrize("kind", PLATFORMS)
def test_a_limit_of_streams_that_is_lowered_is_kept(api, org, worker, kind):
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
def test_a_service_that_takes_one_stream_until_it_has_answered_refuses_none(api, org, worker, kind):
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


@pytest.mark.parametrize("kind", PLATFORMS)
def test_streams_that_are_refused_go_again(api, org, worker, redis, kind):
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
