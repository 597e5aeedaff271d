"""Single sends by 64 clients at once: each gets its own answer, also when the web is killed."""

import collections
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

pytestmark = pytest.mark.xdist_group("service-2")

CLIENTS = 64
CALLS = 10
"""How many calls each client makes where the web is killed."""
RETRY_SECONDS = 180
UNKNOWN = "01a1fb37-a4a4-7470-9fc2-6927566e64b5"


@pytest.fixture
def service(young_scene):
    return young_scene[0]


class Client:
    """One client with a connection of its own."""

    def __init__(self, url, token, contact):
        self.url, self.contact = url, contact
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {token}"

    def body(self, note, **fields):
        return {
            "channel": "EMAIL",
            "category": "TRANSACTIONAL",
            "to": [{"contactId": self.contact}],
            "content": {"subject": "A note", "text": note},
            **fields,
        }

    def send(self, body, key=None):
        headers = {"Idempotency-Key": key} if key else {}
        return self.session.post(self.url, json=body, headers=headers, timeout=20)


def clients(service):
    """Return clients of two organizations in turn."""
    demo = service.demo()
    url = f"{demo['base_url']}/messages"
    callers = [demo, {**demo, **demo["other"]}]
    known = [(url, service.token(each), each["contact_ids"][0]) for each in callers]
    return [Client(*known[number % 2]) for number in range(CLIENTS)]


def all_at_once(jobs):
    start = threading.Barrier(len(jobs))

    def run(job):
        start.wait(30)
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def count(service):
    return service.sql("SELECT count(*) FROM messaging_message")[0][0]


def first_or_repeat(client, note):
    """Send with a key that another client uses too; again while its request is running."""
    until = time.monotonic() + RETRY_SECONDS
    while (answer := client.send(client.body(note), note)).status_code == 409:
        assert time.monotonic() < until
        time.sleep(0.05)
    return answer


def test_every_client_gets_the_answer_to_its_request(service):
    """Pairs of neighbours differ in their organization; clients 0 and 2, 1 and 3 … share a key."""
    before = count(service)

    def job(number, client):
        def run():
            pair = f"pair-{number // 4}"
            return [
                client.send(client.body(f"good {number}")),
                client.send(client.body("x", to=[{"contactId": UNKNOWN}])),
                client.send(client.body("x", category="NONE")),
                first_or_repeat(client, pair),
                client.send(client.body(f"own {number}"), f"own-{number}"),
                client.send(client.body("another body"), f"own-{number}"),
                client.send({"channel": "EMAIL"}),
            ]

        return run

    answers = all_at_once([job(n, client) for n, client in enumerate(clients(service))])
    ids = collections.Counter()
    for number, (good, unknown, category, pair, own, reused, invalid) in enumerate(answers):
        assert [good.status_code, pair.status_code, own.status_code] == [202, 202, 202]
        codes = [each.json()["error"]["code"] for each in (unknown, category, reused, invalid)]
        assert codes == [
            "NOT_FOUND",
            "INVALID_PAYLOAD",
            "IDEMPOTENCY_KEY_REUSED",
            "INVALID_PAYLOAD",
        ]
        assert pair.json()["messageId"] == answers[number ^ 2][3].json()["messageId"]
        ids.update(each.json()["messageId"] for each in (good, pair, own))
        headers = [each.headers["X-Request-Id"] for each in answers[number]]
        assert len(set(headers)) == len(headers)
    assert set(ids.values()) == {1, 2}  # of a pair both got the same
    stored = service.sql("SELECT id::text, organization_id FROM messaging_message")
    assert set(ids) <= {row_id for row_id, _ in stored}
    assert len(stored) - before == len(ids) == CLIENTS * 2 + CLIENTS // 2


def test_answered_sends_survive_a_kill_and_repeats_are_not_doubled(service):
    """Each client repeats a call with its key until it is answered, as a good client does."""
    before, over = count(service), threading.Event()

    def persistent(client, note):
        until = time.monotonic() + RETRY_SECONDS
        while time.monotonic() < until:
            try:
                answer = client.send(client.body(note), note)
            except requests.RequestException:
                time.sleep(0.1)  # the web was killed
                continue
            if answer.status_code == 202:
                return answer.json()["messageId"]
            assert answer.status_code in (409, 503), answer.text
            time.sleep(0.1)
        raise AssertionError(f"no answer in {RETRY_SECONDS} s")

    def job(number, client):
        def run():
            return [persistent(client, f"kill-{number}-{turn}") for turn in range(CALLS)]

        return run

    def kill():
        for _ in range(3):
            reached = count(service) + CLIENTS
            until = time.monotonic() + RETRY_SECONDS
            while count(service) < reached and not over.is_set():
                assert time.monotonic() < until
                time.sleep(0.005)
            service.kill("rme.web")

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        answers = all_at_once([job(n, client) for n, client in enumerate(clients(service))])
    finally:
        over.set()
        killer.join()
    answered = [message_id for each in answers for message_id in each]
    assert len(set(answered)) == CLIENTS * CALLS
    stored = {row_id for (row_id,) in service.sql("SELECT id::text FROM messaging_message")}
    assert set(answered) <= stored
    assert len(stored) - before == CLIENTS * CALLS
