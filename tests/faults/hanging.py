"""A worker's task that sends what is ready, and hangs in native code where it renders apart."""

import os

from messaging.content.outgoing import OutgoingRenderer
from messaging.delivery import claims, deliver
from messaging.delivery.sending_process import SendingProcess
from messaging.feedback import receipts
from rme.celery import app
from rme.core.outbound import outbound_transport
from rme.core.redis.connection import redis_client
from tests.messaging.content import hanging_renders

RUNS = "tests:runs"


@app.task(name="tests.send")  # type: ignore[untyped-decorator]
def send(organization_id: str) -> None:
    """Send an organization's emails, and leave the process and their number in Redis."""
    process = SendingProcess()
    process.renderer = OutgoingRenderer(hanging_renders.hang)
    batch = claims.claim(organization_id, "EMAIL", 0)
    counts = deliver.deliver([batch], outbound_transport(), process, receipts.apply)
    redis_client().rpush(RUNS, f"{os.getpid()} {counts[organization_id]}")
