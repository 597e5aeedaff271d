"""What each step of a single accept costs, alone and in a set of 32, without HTTP."""

import io
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import orjson

from bench.scene import Scene
from rme.core.http.serving.sets import SetRequest

COUNT = int(os.environ.get("BENCH_COUNT", "2000"))
SET = 32


def steps(scene: Scene) -> None:
    """Measure the steps one after the other, in this process, and the whole call around them."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from messaging.accept import Call, Submission, acceptance, idempotency
    from messaging.accept.facts.reading import read_facts
    from messaging.accept.plans import plans_of
    from messaging.accept.requests import MESSAGE
    from messaging.accept.results import result_of
    from messaging.accept.send_request import CallerMessage
    from messaging.accept.storing import AcceptedBatch, message_of
    from messaging.api.messages import SINGLE_SENDS
    from messaging.delivery import wakeups
    from messaging.domain.planning import Plan
    from messaging.policy import organization_policy, send_limits
    from rme.core import ids
    from rme.core.http.parsing import parse, refuse_deep, refuse_many_values
    from rme.core.process import memory
    from rme.tenants.oauth import authentication, call_limits

    memory.freeze_startup_objects()
    caller = authentication.caller_of(scene.token)
    sending = organization_policy.of("bench").sending
    body = json.dumps(scene.body(0)).encode()
    messages = [parse(MESSAGE, scene.body(i)) for i in range(SET)]
    requests = [CallerMessage(caller, message) for message in messages]
    calls = [Call(caller, Submission(message), "bench") for message in messages]

    def read_json() -> None:
        refuse_many_values(body)
        value = orjson.loads(body)
        refuse_deep(value)

    def plans(some: Sequence[CallerMessage]) -> None:
        set_facts = read_facts(some)
        plans_of(set_facts.requests, set_facts.now)

    def rows_of(some: Sequence[CallerMessage]) -> AcceptedBatch:
        set_facts = read_facts(some)
        rows = []
        for request, plan in zip(some, plans_of(set_facts.requests, set_facts.now), strict=True):
            assert isinstance(plan, Plan)
            message_id = ids.new_text_id()
            rows.append(message_of(message_id, request, plan))
            assert result_of(plan, message_id, "bench").body
        return AcceptedBatch(set_facts.now, rows, [])

    def keyed(some: Sequence[Call]) -> None:
        scopes = [
            idempotency.scope_of(caller, idempotency.CallerKey(str(i), ""))
            for i in range(len(some))
        ]
        with idempotency.holding(scopes):
            pass

    print("step: µs of CPU of this process, µs until it is done, statements; alone | a set of 32")
    one: list[tuple[str, Callable[[], object]]] = [
        ("the whole call by Django, without HTTP", lambda: _call(scene, body)),
        ("token", lambda: authentication.caller_of(scene.token)),
        ("JSON and its bounds", read_json),
        ("schema", lambda: parse(MESSAGE, scene.body(0))),
    ]
    for name, step in one:
        print(f"  {name:<34} {_measured(step)}", flush=True)
    several: list[tuple[str, Callable[[int], object]]] = [
        (
            "answered by sets, without HTTP",
            lambda n: SINGLE_SENDS.answer(_requests(scene, body, n)),
        ),
        ("call limit (Redis)", lambda n: call_limits.take_each([caller] * n)),
        ("ceilings (Redis)", lambda n: send_limits.take_each("bench", sending, n)),
        ("facts", lambda n: read_facts(requests[:n])),
        ("facts and plan", lambda n: plans(requests[:n])),
        ("facts, plan, rows and answers", lambda n: rows_of(requests[:n])),
        ("the same, stored", lambda n: rows_of(requests[:n]).store()),
        ("keys held and released", lambda n: keyed(calls[:n])),
        ("wakeup (Redis)", lambda n: wakeups.wake(["EMAIL"])),
        ("accept_set, all of it", lambda n: acceptance.accept_set(calls[:n])),
    ]
    for name, of_set in several:
        costs = []
        for size in (1, SET):
            with CaptureQueriesContext(connection) as captured:
                of_set(size)
            cost = _measured(partial(of_set, size), size)
            costs.append(f"{cost} {len(captured):>2}")
        print(f"  {name:<34} {' | '.join(costs)}", flush=True)


def _measured(step: Callable[[], object], size: int = 1) -> str:
    """Return the microseconds a message: of CPU, and of the wall's clock."""
    count = max(COUNT // size, 50)
    for _ in range(count // 10):
        step()
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(count):
        step()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return f"{cpu / count / size * 1e6:>6.0f} {wall / count / size * 1e6:>6.0f}"


def _requests(scene: Scene, body: bytes, count: int) -> list[SetRequest]:
    from messaging.api.messages import SINGLE_SENDS

    environ = {
        "QUERY_STRING": "",
        "CONTENT_TYPE": "application/json",
        "HTTP_HOST": "127.0.0.1:8000",
        "HTTP_AUTHORIZATION": f"Bearer {scene.token}",
    }
    return [SINGLE_SENDS.read(environ, body) for _ in range(count)]


def _call(scene: Scene, body: bytes) -> None:
    from rme.wsgi import application

    environ = {
        "REQUEST_METHOD": "POST",
        "SCRIPT_NAME": "",
        "PATH_INFO": "/rme/v1/messages",
        "QUERY_STRING": "",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "8000",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "127.0.0.1:8000",
        "HTTP_AUTHORIZATION": f"Bearer {scene.token}",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    found: list[str] = []
    response = application(environ, lambda status, headers, *_: found.append(status))
    b"".join(response)
    response.close()
    assert found == ["202 Accepted"], found
