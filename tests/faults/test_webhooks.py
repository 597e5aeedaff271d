"""An endpoint gets every event from the answer to its creation on, whichever process writes it."""

import pytest
import requests

from tests.faults.test_singles import all_at_once, clients
from tests.service import wait_for

pytestmark = pytest.mark.xdist_group("service-2")


def queued(service, endpoint_id, kind):
    """Return how many events of a type are queued for an endpoint."""
    ((count,),) = service.sql(
        f"SELECT count(*) FROM messaging_notice WHERE endpoint_id = {endpoint_id} "
        f"AND type = 'message.{kind}'"
    )
    return count


@pytest.mark.parametrize("attempt", range(3))
def test_a_new_endpoint_gets_the_events_of_every_process(young_scene, attempt):
    service = young_scene[0]
    demo = service.demo()
    connected = clients(service)[::2]  # those of the demo's organization
    headers = {"Authorization": f"Bearer {service.token(demo)}"}
    url = f"{demo['base_url']}/webhook-endpoints"

    def call(method, path="", **body):
        answer = requests.request(method, f"{url}{path}", json=body, headers=headers, timeout=20)
        assert answer.ok, answer.text
        return answer.json()["id"]

    def send_all(note):
        answers = all_at_once([lambda each=each: each.send(each.body(note)) for each in connected])
        assert {answer.status_code for answer in answers} == {202}

    send_all("every process has just met the organization")
    made = call("POST", url="https://hooks.example.com/rme", types=["message.accepted"])
    send_all("created")
    assert queued(service, made, "accepted") == len(connected)
    call("PATCH", f"/{made}", types=["message.accepted", "message.sent"])
    send_all("subscribed to more")
    wait_for(lambda: queued(service, made, "sent") >= len(connected))
    call("PATCH", f"/{made}", enabled=False)
    call("PATCH", f"/{made}", enabled=True)
    send_all("enabled again")
    assert queued(service, made, "accepted") == 3 * len(connected)
    requests.delete(f"{url}/{made}", headers=headers, timeout=20).raise_for_status()
