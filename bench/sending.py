"""A worker process without Celery around it: it runs the worker's task until nothing is ready.

`python -m bench.sending PUSH COUNT WORKERS` does so for one channel in some processes at once, and
prints the seconds that it took (the processors' together) and how many were sent in them.
"""

import json
import multiprocessing
import os
import sys
import time
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier


def send_all(start: Barrier) -> None:
    """Send all that is ready to be sent by email, from the moment that all are at the barrier."""
    _get_ready("EMAIL")
    start.wait(60)
    _send("EMAIL")


def _get_ready(channel: str) -> None:
    import django

    django.setup()
    from bench import engines
    from messaging.delivery import claims, tasks  # noqa: F401 a worker has long imported it
    from rme.core.process import memory

    engines.use(os.environ.get("BENCH_ENGINE", ""))
    memory.freeze_startup_objects()
    memory.keep_memory()
    claims.ready(channel)  # the connection stands, as a worker's does


def _send(channel: str) -> None:
    from messaging.delivery import tasks
    from messaging.delivery.sending_process import SendingProcess
    from messaging.models import Delivery
    from rme.core.outbound import outbound_transport

    process = SendingProcess()
    left = Delivery.objects.filter(status="ACCEPTED", channel=channel)
    while left.exists():  # what a busy server has not answered in time is due again after a second
        tasks.send(channel, outbound_transport(), process)
        time.sleep(0.005)
    assert process.late_outcomes.finish(30)  # as a worker does before it ends


def _send_first(channel: str) -> None:
    """Send one: what a process does once (read keys, connect, log in, load Celery's queues) is
    done before the clock starts, as it is by the peers.
    """
    from messaging.delivery import claims, deliver, wakeups
    from messaging.delivery.sending_process import SendingProcess
    from messaging.feedback import receipts
    from rme.core.outbound import outbound_transport

    ((priority, organization_id), *_) = claims.ready(channel)
    claim = claims.claim(organization_id, channel, priority, 1)
    deliver.deliver([claim], outbound_transport(), SendingProcess(), receipts.apply)
    wakeups.wake([channel])


def _work(channel: str, start: Barrier, measured: "SimpleQueue[tuple[float, float]]") -> None:
    """Send until nothing is ready; tell the seconds of the wall's clock and the processor's."""
    _get_ready(channel)
    _send_first(channel)
    start.wait(60)
    wall, cpu = time.perf_counter(), time.process_time()
    _send(channel)
    measured.put((time.perf_counter() - wall, time.process_time() - cpu))


def main() -> None:
    channel, count, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    spawning = multiprocessing.get_context("spawn")
    start, measured = spawning.Barrier(workers), spawning.SimpleQueue()
    running = [
        spawning.Process(target=_work, args=(channel, start, measured)) for _ in range(workers)
    ]
    for process in running:
        process.start()
    for process in running:
        process.join()
    if any(process.exitcode for process in running):
        raise SystemExit("a worker has failed")
    walls, cpus = zip(*(measured.get() for _ in running), strict=True)
    print(json.dumps({"wall": max(walls), "cpu": sum(cpus), "count": count - workers}))


if __name__ == "__main__":
    main()
