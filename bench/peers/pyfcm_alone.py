"""pyfcm: `notify` in four threads, each with the connection that pyfcm keeps for it."""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from google.oauth2 import service_account
from pyfcm import FCMNotification

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
THREADS = 4


def main(job: dict[str, Any]) -> None:
    """Send the job's messages; print the seconds and how many were accepted."""
    FCMNotification.FCM_END_POINT_BASE = f"https://localhost:{job['port']}/v1/projects"
    credentials = service_account.Credentials.from_service_account_info(
        job["account"], scopes=[SCOPE]
    )
    client = FCMNotification(credentials=credentials, project_id=job["account"]["project_id"])

    def send(given: dict[str, Any]) -> bool:
        answer = client.notify(
            fcm_token=given["token"],
            notification_title=given["title"],
            notification_body=given["body"],
            data_payload=given["data"],
            android_config={
                "priority": "HIGH",
                "collapse_key": given["collapse_key"],
                "ttl": "86400s",
                "notification": {"tag": given["collapse_key"]},
            },
        )
        return "name" in answer

    messages = job["messages"]
    with ThreadPoolExecutor(THREADS) as threads:
        assert all(threads.map(send, messages[: 2 * THREADS]))
        wall, cpu = time.perf_counter(), time.process_time()
        accepted = sum(threads.map(send, messages))
        seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    assert accepted == len(messages), accepted
    print(json.dumps({**seconds, "count": accepted}))


main(json.load(sys.stdin))
