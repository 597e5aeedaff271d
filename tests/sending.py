"""The tests' sending process: what one of its windows left in flight, the next has to wait for."""

from messaging.delivery import tasks
from messaging.delivery.sending_process import SendingProcess
from rme.core.outbound import outbound_transport

PROCESS = SendingProcess()


def send_ready(channel: str) -> None:
    """Send what is ready on a channel, as the task does."""
    tasks.send(channel, outbound_transport(), PROCESS)
