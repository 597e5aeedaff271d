"""The whole service: a scheduled message outlives a restart, goes in time and once; a stop is
clean.
"""

from datetime import UTC, datetime, timedelta

import pytest
import requests

from tests.service import wait_for
from tests.stopwatch import Stopwatch

pytestmark = pytest.mark.xdist_group("service")


def call(demo, token, path, body):
    answer = requests.post(
        f"{demo['base_url']}{path}",
        json=body,
        headers={"Authorization": f"Bearer {token}"},
        timeout=20,
    )
    assert answer.status_code == 202, answer.text
    return answer.json()


def shown(demo, token, message):
    """Return the status of a message as the API shows it, with a token from before the restart."""
    answer = requests.get(
        f"{demo['base_url']}/messages/{message['messageId']}",
        headers={"Authorization": f"Bearer {token}"},
        timeout=20,
    )
    assert answer.status_code == 200, answer.text
    return answer.json()["status"]


def item(contact_id, **fields):
    return {
        "channel": "EMAIL",
        "category": "TRANSACTIONAL",
        "to": [{"contactId": contact_id}],
        "template": {"name": "note", "language": "en_US"},
        "context": {"variables": {"note": "hello"}},
        **fields,
    }


@pytest.mark.promise("schedule-12", "faults-15")
def test_scheduled_messages_survive_a_restart_and_are_sent_once_in_time(callers_service):
    service = callers_service
    demo = service.demo()
    token = service.token(demo)
    # After the restart, however long that takes; then the time is brought near.
    at = datetime.now(UTC) + timedelta(hours=1)
    schedule = {"mode": "AT", "at": at.isoformat()}
    late = call(demo, token, "/messages", item(demo["contact_ids"][0], schedule=schedule))
    assert late["status"] == "SCHEDULED"
    # The simulator takes five seconds for a window to this address.
    first = demo["contact_ids"][1]
    service.sql(
        "UPDATE crm_contact SET email = 'slow@simulator.rme.test' "
        f"WHERE id = '{first}' RETURNING id"
    )
    bulk = call(demo, token, "/messages/bulk", {"messages": [item(first)] * 120})
    assert bulk["accepted"] == 120
    messages = [late["messageId"], *(each["messageId"] for each in bulk["results"])]
    own = ",".join(f"'{each}'" for each in messages)  # the first delivery has its message's id
    tried = f"SELECT count(*) FROM messaging_attempt WHERE delivery_id IN ({own})"
    wait_for(lambda: service.sql(tried)[0][0])
    assert service.stop() == 0  # in the midst of it

    service.start()
    before = service.sql(f"{tried} AND outcome IS NOT NULL")
    assert 50 <= before[0][0] < 120
    assert shown(demo, token, late) == "SCHEDULED"
    left = (
        "SELECT count(*) FROM messaging_delivery "
        f"WHERE message_id IN ({own}) AND status NOT IN ('SENT','DELIVERED')"
    )
    wait_for(lambda: service.sql(left)[0][0] == 1, 240)
    with Stopwatch() as watch:
        [(at,)] = service.sql(
            "UPDATE messaging_delivery d SET scheduled_for = t, due_at = t "
            "FROM (SELECT clock_timestamp() + interval '3 s' AS t) "
            f"WHERE message_id = '{late['messageId']}' AND status = 'SCHEDULED' RETURNING t"
        )
        wait_for(lambda: service.sql(left)[0][0] == 0, 240)
    started, count = service.sql(
        "SELECT min(started_at), count(*) FROM messaging_attempt "
        f"WHERE delivery_id = '{late['messageId']}'"
    )[0]
    assert count == 1
    # Within two seconds in which the machine ran anything of ours.
    assert timedelta(0) <= started - at < timedelta(seconds=2 + watch.stalled)
    assert shown(demo, token, late) in ("SENT", "DELIVERED")
    # A stop finishes the window in hand and gives the rest back: nothing is in doubt.
    assert service.sql(
        "SELECT count(*), count(DISTINCT a.delivery_id), count(a.outcome) "
        "FROM messaging_attempt a JOIN messaging_delivery d ON d.id = a.delivery_id "
        f"WHERE d.message_id IN ({own})"
    ) == [(121, 121, 121)]
