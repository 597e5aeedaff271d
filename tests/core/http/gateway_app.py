"""A WSGI application behind the gateway, with short bounds, for tests/core/http/test_gateway.py."""

import hashlib
import json
import time

from rme.core.http.gateway import Bounds, Gateway

LONG = b"0123456789abcdef" * 4096  # 64 KiB


def app(environ, start_response):
    path = environ["PATH_INFO"]
    status, answer = "200 OK", [b"ok\n"]
    if path == "/slow":
        time.sleep(float(environ["QUERY_STRING"]))
    elif path == "/long":
        answer = (LONG for _ in range(320))  # 20 MiB
    elif path == "/environ":
        shown = {k: v for k, v in environ.items() if not k.startswith("wsgi.")}
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
    start_response(
        status, [("Content-Type", "text/plain"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]
    )
    return answer


application = Gateway(
    app,
    threads=2,
    bounds=Bounds(idle_seconds=2.0, body_seconds=4.0, upload_seconds=4.0, memory=8 * 1024 * 1024),
)
