"""The way of a message goes through the files that docs/architecture.md lists, in that order."""

import re
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import orjson
import pytest

from messaging.api.messages import SINGLE_SENDS
from messaging.delivery import tasks
from messaging.delivery.sending_process import SendingProcess
from messaging.models import Delivery
from rme.core.outbound import outbound_transport
from tests import factories
from tests.rest import Api, message

ROOT = Path(__file__).resolve().parents[2]
APPS = tuple(f"{ROOT}/{app}/" for app in ("rme", "messaging", "push"))
pytestmark = pytest.mark.django_db


def files_entered(run: Callable[[], object]) -> list[str]:
    """Return the files of ours whose functions a call runs, in the order of the calls."""
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(APPS):
            entered.append(str(Path(frame.f_code.co_filename).relative_to(ROOT)))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return entered


def listed(heading: str) -> list[str]:
    """Return the files of a table in docs/architecture.md, from above."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    table = text.partition(f"\n{heading}\n\n")[2].partition("\n\n")[0]
    return re.findall(r"^\| \d+ \| `([^`]+)`", table, re.MULTILINE)


def first_missing(wanted: Sequence[str], entered: Sequence[str]) -> str | None:
    """Return the first file that is not entered after those before it."""
    rest = iter(entered)
    return next((file for file in wanted if file not in rest), None)


def test_accept_and_delivery_enter_the_listed_files_in_order(org):
    api, body = Api(org), message(factories.contact(org))
    environ = {
        "QUERY_STRING": "",
        "CONTENT_TYPE": "application/json",
        "HTTP_HOST": "localhost",
        "HTTP_AUTHORIZATION": f"Bearer {api.token}",
    }
    request = SINGLE_SENDS.read(environ, orjson.dumps(body))
    accepting = files_entered(lambda: SINGLE_SENDS.answer([request]))
    process = SendingProcess()  # threads that run already cannot be traced
    sending = files_entered(lambda: tasks.send("EMAIL", outbound_transport(), process))
    assert Delivery.objects.get().status == "DELIVERED"
    accept, send = listed("**From view to stored row**"), listed("**From task to stored outcome**")
    assert (len(accept), len(send)) == (11, 10)
    assert first_missing(accept, accepting) is None
    assert first_missing(send, sending) is None
