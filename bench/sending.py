"""A worker process without Celery around it: it runs the worker's task until nothing is ready."""

from multiprocessing.synchronize import Barrier


def send_all(start: Barrier) -> None:
    """Send all that is ready to be sent by email, from the moment that all are at the barrier."""
    import django

    django.setup()
    from messaging import claiming, tasks
    from rme.core import garbage

    garbage.spare()
    claiming.ready("EMAIL")  # the connection stands, as a worker's does
    start.wait(60)
    while claiming.ready("EMAIL"):
        tasks.send_ready("EMAIL")
