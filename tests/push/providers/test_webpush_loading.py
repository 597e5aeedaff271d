"""pywebpush, and aiohttp with it, is loaded by processes that encrypt for browsers, only there."""

import json
import subprocess
import sys

import pytest

from tests.push.subscriptions import Browser

LIBRARIES = ["aiohttp", "pywebpush"]
LOADED = f"print(json.dumps([name for name in {LIBRARIES} if name in sys.modules]))"


def loaded_after(code):
    """Return which of the libraries a new process has loaded, by the steps at which it prints."""
    done = subprocess.run(
        [sys.executable, "-c", f"import json, sys\n{code}\n{LOADED}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    "start",
    [
        pytest.param("import rme.asgi", id="web"),
        pytest.param("import rme.workers.__main__ as workers; workers.load()", id="workers"),
    ],
)
def test_process_starts_without_pywebpush(start):
    assert loaded_after(start) == [[]]


def test_first_encryption_loads_pywebpush():
    code = f"""
from rme.celery import app
from push.providers.webpush import parse_subscription
subscription = parse_subscription({Browser().text!r})
{LOADED}
assert len(subscription.encrypt(b"Hi")) == 86 + 2 + 1 + 16
"""
    assert loaded_after(code) == [[], LIBRARIES]
