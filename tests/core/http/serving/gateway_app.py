"""A WSGI application behind the gateway, with short bounds, for `test_gateway.py`."""

import hashlib
import json
import time
from collections import Counter, defaultdict
from concurrent.futures import Future
from threading import Event, Thread

from rme.core import errors
from rme.core.http.serving.gateway import REFUSAL, Bounds, Gateway
from rme.core.http.serving.long_answers import ROOM
from rme.core.process import admission

LONG = b"0123456789abcdef" * 4096  # 64 KiB
gates: defaultdict[str, Event] = defaultdict(Event)
"""What calls wait for, by the names that tests give them."""
waiting: Counter[str] = Counter()
"""How many calls have reached each."""


def app(environ, start_response):
    path = environ["PATH_INFO"]
    status, answer = "200 OK", [b"ok\n"]
    if REFUSAL in environ:
        status, answer = "429 Too Many Requests", [b"too many\n"]
    elif path.startswith("/owned/"):
        status, answer = owned(environ, path)
    elif path.startswith("/awaits/"):
        status, answer = awaits(environ, path)
    elif path == "/waiting":
        answer = [str(waiting[environ["QUERY_STRING"]]).encode()]
    elif path == "/open":
        gates[environ["QUERY_STRING"]].set()
    elif path == "/slow":
        time.sleep(float(environ["QUERY_STRING"]))
    elif path == "/long":
        answer = (LONG for _ in range(320))  # 20 MiB
    elif path == "/dripping":
        answer = dripping()
    elif path == "/breaking":
        answer = breaking()
    elif path == "/environ":
        shown = {
            k: v
            for k, v in environ.items()
            if not k.startswith("wsgi.") and k not in (admission.TURN, ROOM)
        }
        answer = [json.dumps(shown).encode()]
    elif path == "/digest":
        try:
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        except OSError as error:
            status, answer = "400 Bad Request", [str(error).encode()]
        else:
            answer = [f"{len(body)} {hashlib.sha256(body).hexdigest()}".encode()]
    elif path == "/length":
        answer = [environ["CONTENT_LENGTH"].encode()]
    elif path == "/fails":
        raise ValueError("a fault")
    cookies = [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    start_response(status, [("Content-Type", "text/plain"), ("X-Request-Id", "the-id"), *cookies])
    return answer


def dripping():
    """Yield an answer for ten seconds, and say how it ended."""
    manner = "early"
    try:
        for _ in range(100):
            yield LONG
            time.sleep(0.1)
        manner = "late"
    finally:
        print(f"dripping ended {manner}", flush=True)


def breaking():
    """Yield a part of a long answer, then fail."""
    yield LONG * 2
    raise ValueError("a fault")


def owned(environ, path):
    """Answer as the application does: the credential shows the owners, and the rest takes long."""
    organization, person = environ.get("HTTP_AUTHORIZATION", "/").split("/")
    try:
        admission.claim(environ, admission.Owners(organization, person))
    except errors.RateLimited:
        return "429 Too Many Requests", [b"too many at once\n"]
    pause = path.removeprefix("/owned/")
    if pause.startswith("gate"):
        wait(pause)
    else:
        time.sleep(float(pause))
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    return "200 OK", [f"{organization}/{person} {body.decode()}".encode()]


def awaits(environ, path):
    """Answer as an application that needs what takes long elsewhere: it waits without a thread."""
    if admission.AWAITED not in environ:
        ready = Future()
        environ[admission.TURN].wait_for(ready)

        def prepare():
            wait(path.removeprefix("/awaits/"))
            ready.set_result(b"ready ")

        Thread(target=prepare).start()
        return "429 Too Many Requests", [b"nobody sees this\n"]
    return "200 OK", [environ[admission.AWAITED].result(), environ["wsgi.input"].read()]


def wait(name):
    """Wait until a test opens a gate."""
    waiting[name] += 1
    gates[name].wait(60)


application = Gateway(
    app,
    threads=4,
    bounds=Bounds(
        idle_seconds=2.0,
        body_seconds=4.0,
        upload_seconds=4.0,
        memory=8 * 1024 * 1024,
        turn_seconds=6.0,
        disk=128 * 1024 * 1024,
    ),
)
