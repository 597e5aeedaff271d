"""firebase-admin: `send_each`, as many at a time as its pool keeps connections."""

import json
import sys
import time
from datetime import timedelta
from typing import Any

import firebase_admin
from firebase_admin import credentials, messaging
from requests.adapters import HTTPAdapter


def message(given: dict[str, Any]) -> messaging.Message:
    return messaging.Message(
        token=given["token"],
        notification=messaging.Notification(given["title"], given["body"]),
        data=given["data"],
        android=messaging.AndroidConfig(
            priority="high",
            collapse_key=given["collapse_key"],
            ttl=timedelta(days=1),
            notification=messaging.AndroidNotification(tag=given["collapse_key"]),
        ),
    )


def main(job: dict[str, Any]) -> None:
    where = f"https://localhost:{job['port']}"
    service = messaging._MessagingService
    service.FCM_URL = f"{where}/v1/projects/{{0}}/messages:send"
    app = firebase_admin.initialize_app(credentials.Certificate(job["account"]))
    session = messaging._get_messaging_service(app)._client.session
    session.mount(where, HTTPAdapter(pool_connections=100, pool_maxsize=100))  # as for Google's
    messages = [message(given) for given in job["messages"]]
    size = job.get("batch", 100)
    assert messaging.send_each(messages[:8]).success_count == 8
    wall, cpu = time.perf_counter(), time.process_time()
    taken = sum(
        messaging.send_each(messages[start : start + size]).success_count
        for start in range(0, len(messages), size)
    )
    measured = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    assert taken == len(messages), taken
    print(json.dumps({**measured, "count": taken}))


main(json.load(sys.stdin))
