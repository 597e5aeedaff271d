"""pywebpush: its own `webpush()`, a kept session and a key that is read once, in some threads."""

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import requests
from py_vapid import Vapid
from pywebpush import webpush


def main(job: dict[str, Any]) -> None:
    kept = threading.local()
    key = Vapid.from_string(job["vapid_private_key"])
    claims = {"sub": "mailto:ops@example.com"}

    def send(message: dict[str, Any]) -> bool:
        if not hasattr(kept, "session"):
            kept.session = requests.Session()
        answer = webpush(
            message["subscription"],
            message["payload"],
            vapid_private_key=key,
            vapid_claims=dict(claims),
            ttl=86_400,
            headers={"Urgency": "high", "Topic": message["topic"]},
            requests_session=kept.session,
        )
        return answer.status_code == 201

    messages = job["messages"]
    with ThreadPoolExecutor(job.get("threads", 4)) as pool:
        assert all(pool.map(send, messages[:8]))
        wall, cpu = time.perf_counter(), time.process_time()
        taken = sum(pool.map(send, messages))
        measured = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    assert taken == len(messages), taken
    print(json.dumps({**measured, "count": taken}))


main(json.load(sys.stdin))
