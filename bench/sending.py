"""A worker process without Celery around it: it runs the worker's task until nothing is ready.

`python -m bench.sending PUSH` does so for one channel, and prints the seconds that it took.
"""

import json
import sys
import time
from multiprocessing.synchronize import Barrier


def send_all(start: Barrier) -> None:
    """Send all that is ready to be sent by email, from the moment that all are at the barrier."""
    _get_ready("EMAIL")
    start.wait(60)
    _send("EMAIL")


def _get_ready(channel: str) -> None:
    import django

    django.setup()
    from messaging import claiming, tasks  # noqa: F401 a worker has long imported it
    from rme.core import garbage

    garbage.spare()
    claiming.ready(channel)  # the connection stands, as a worker's does


def _send(channel: str) -> None:
    from messaging import claiming, tasks

    while claiming.ready(channel):
        tasks.send_ready(channel)


def main() -> None:
    channel = sys.argv[1]
    _get_ready(channel)
    wall, cpu = time.perf_counter(), time.process_time()
    _send(channel)
    told = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    print(json.dumps(told))


if __name__ == "__main__":
    main()
