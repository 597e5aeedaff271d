"""Accepting in this process: messages that wait in the database, without HTTP."""

from collections.abc import Callable
from typing import Any

from bench.scene import Scene


def accept_in_process(
    scene: Scene, count: int, body: Callable[[int], dict[str, Any]] | None = None
) -> None:
    """Accept messages in bulks of 500; `body` writes the request of a number."""
    from messaging.accept import Submission, accept_bulk
    from messaging.accept.requests import MESSAGE
    from rme.core.http.parsing import parse
    from rme.tenants import organizations
    from rme.tenants.authentication import Caller

    caller = Caller(organizations.get("bench"), scene.application_id, 1, False)
    write = body or scene.body
    for start in range(0, count, 500):
        submissions = [Submission(parse(MESSAGE, write(start + i))) for i in range(500)]
        accept_bulk(caller, submissions, key=None, request_id="bench")
