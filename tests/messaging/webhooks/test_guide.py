"""The guide for receivers: its snippets verify what is sent, and nothing else."""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from messaging.models.endpoints import TYPES
from messaging.webhooks import dispatcher, endpoint_queue, endpoints, signatures

GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "webhooks.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
(NODE,) = re.findall(r"```javascript\n(.*?)```", GUIDE, re.DOTALL)
BODY = '{"type": "message.sent", "data": {"name": "é☃𝄞"}}'.encode()
KEY, OTHER = signatures.new_secret(), signatures.new_secret()


def headers(keys, body=BODY, age=0):
    timestamp = int(time.time()) - age
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signatures.sign(keys, "msg_1", timestamp, body),
    }


RIGHT = [[KEY], [OTHER, KEY], [KEY, OTHER]]


def wrong():
    """Return headers that do not verify, made now: a future time does not stay in the future."""
    return [
        headers([OTHER]),
        headers([KEY], b"{}"),
        headers([KEY], age=400),
        headers([KEY], age=-400),
        {**headers([KEY]), "webhook-signature": ""},
        {**headers([KEY]), "webhook-signature": "v1a,AAAA v2,AAAA v1,é"},
        {**headers([KEY]), "webhook-id": "msg_2"},
    ]


@pytest.mark.parametrize("snippet", PYTHON, ids=["library", "without"])
def test_the_python_snippets_verify(snippet):
    names: dict[str, Any] = {}
    exec(snippet, names)
    for keys in RIGHT:
        assert names["verify"](KEY, headers(keys), BODY) == json.loads(BODY)
    for each in wrong():
        with pytest.raises(Exception):  # noqa: B017 - each has an error of its own
            names["verify"](KEY, each, BODY)


@pytest.mark.skipif(not shutil.which("node"), reason="there is no node on this machine")
def test_the_node_snippet_verifies():
    cases = [headers(keys) for keys in RIGHT] + wrong()
    script = f"""{NODE}
const body = Buffer.from({json.dumps(BODY.decode())}, "utf8");
const results = {json.dumps(cases)}.map((headers) => {{
  try {{ return verify({json.dumps(KEY)}, headers, body); }} catch (error) {{ return null; }}
}});
console.log(JSON.stringify(results));
"""
    ran = subprocess.run(["node", "-"], input=script, capture_output=True, text=True, timeout=30)
    assert ran.stderr == ""
    assert json.loads(ran.stdout) == [json.loads(BODY)] * len(RIGHT) + [None] * len(wrong())


def test_the_guide_names_every_type():
    assert {name for name in TYPES if f"`{name}`" not in GUIDE} == set()


def test_the_guide_has_the_numbers_of_the_code():
    assert f"there are {dispatcher.TIMEOUT:.0f} seconds" in GUIDE
    assert f"at most {endpoints.PER_ORGANIZATION} endpoints" in GUIDE
    assert "5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h and 24 h" in GUIDE
    assert [5, 300, 1800, *(hours * 3600 for hours in (2, 5, 10, 14, 20, 24))] == list(
        endpoint_queue.SCHEDULE
    )
