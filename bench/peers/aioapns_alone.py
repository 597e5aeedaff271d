"""aioapns: one client that opens the connections it needs, fifty notifications under way.

With more under way at once, 200 to 3,000, it took up to a fifth more processor time for each.
"""

import asyncio
import json
import ssl
import sys
import time
from typing import Any
from uuid import uuid4

from aioapns import APNs, NotificationRequest, PushType
from aioapns.connection import APNsProductionClientProtocol


async def main(job: dict[str, Any]) -> None:
    APNsProductionClientProtocol.APNS_SERVER = "localhost"
    APNsProductionClientProtocol.APNS_PORT = job["port"]
    tls = ssl.create_default_context(cafile=job["ca"])
    tls.set_alpn_protocols(["h2"])
    client = APNs(
        key=job["key"],
        key_id=job["key_id"],
        team_id=job["team_id"],
        topic=job["topic"],
        ssl_context=tls,
        max_connections=job.get("connections", 10),
    )
    requests = [
        NotificationRequest(
            device_token=each["token"],
            message=each["payload"],
            notification_id=str(uuid4()),
            time_to_live=86_400,
            priority=10,
            collapse_key=str(uuid4()),
            push_type=PushType.ALERT,
        )
        for each in job["messages"]
    ]
    (first, *requests) = requests
    assert (await client.send_notification(first)).is_successful
    waiting = iter(requests)
    taken = 0

    async def send() -> None:
        nonlocal taken
        for request in waiting:
            answer = await client.send_notification(request)
            taken += answer.is_successful

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(send() for _ in range(job.get("under_way", 50))))
    measured = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    assert taken == len(requests), taken
    print(json.dumps({**measured, "count": taken}))


asyncio.run(main(json.load(sys.stdin)))
