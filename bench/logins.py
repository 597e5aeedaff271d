"""What guesses at passwords cost, beside log-ins that succeed."""

import time
from typing import Any

from bench.scene import Scene

SUCCESSES, FAILURES, ROUNDS = 10, 100, 3
PASSWORD = "correct horse battery"
ADDRESS = "192.0.2.1"


def _cpu(tries: list[tuple[str, str]]) -> float:
    """Return the seconds of the processor that some tries to log in take in this process."""
    from django.test import Client

    client = Client(REMOTE_ADDR=ADDRESS, headers={"host": "localhost"})
    client.get("/admin/login/")  # which loads the middleware, once for each client
    started = time.process_time()
    for name, password in tries:
        client.cookies.clear()
        answer = client.post("/admin/login/", {"username": name, "password": password})
        expected = (302,) if password == PASSWORD else (200, 429)
        assert answer.status_code in expected, answer.status_code
    return time.process_time() - started


def logins(scene: Scene) -> None:
    """A hundred failures from one address within a minute, beside ten successes."""
    from rme.core.redis.connection import redis_client
    from rme.tenants.models import User

    User.objects.filter(username__startswith="bench-login-").delete()
    names = [f"bench-login-{number}" for number in range(SUCCESSES)]
    for name in names:
        User.objects.create_user(name, password=PASSWORD, is_staff=True)
    guesses = [(f"bench-login-{number % 20}", "guess") for number in range(FAILURES)]
    _cpu([(names[0], PASSWORD)])  # what the first log-in loads and compiles
    found: list[Any] = []
    for _ in range(ROUNDS):
        redis_client().flushdb()
        successes = _cpu([(name, PASSWORD) for name in names])
        redis_client().flushdb()
        found.append((_cpu(guesses) / successes, successes))
    ratio, successes = sorted(found)[ROUNDS // 2]
    print(f"log-in: {SUCCESSES} successes {successes * 1000:>32,.0f} ms of CPU")
    print(f"log-in: {FAILURES} failures, one address {ratio * successes * 1000:>24,.0f} ms of CPU "
          f"{ratio:.2f} x the successes")  # fmt: skip
    assert ratio < 1
    User.objects.filter(username__startswith="bench-login-").delete()
