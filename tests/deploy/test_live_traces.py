"""Traces of a running service: its processes are forked, and each exports by itself.

`make test-alerts` runs this, too.
"""

import time

import pytest
import requests

from tests.fakes.otlp import Collector
from tests.service import data_folder, running

pytestmark = pytest.mark.long
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
MESSAGES = 20
WAIT_SECONDS = 120.0


def test_web_and_workers_export_their_traces_before_they_end():
    with Collector() as collector, data_folder() as var:
        env = {"TRACING": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url.rstrip("/")}
        with running(var, **env) as service:
            demo = service.demo()
            headers = {"Authorization": f"Bearer {service.token(demo)}"}
            headers["traceparent"] = f"00-{TRACE}-{PARENT}-01"
            to = [{"contactId": demo["contact_ids"][0]}]
            body = {"channel": "EMAIL", "category": "TRANSACTIONAL", "to": to}
            body["content"] = {"subject": "a", "text": "b"}
            for _ in range(MESSAGES):
                answer = requests.post(
                    f"{demo['base_url']}/messages", json=body, headers=headers, timeout=30
                )
                assert answer.status_code == 202
            until = time.monotonic() + WAIT_SECONDS
            waiting = "SELECT count(*) FROM messaging_delivery WHERE status <> 'DELIVERED'"
            while service.sql(waiting) != [(0,)]:
                assert time.monotonic() < until
                time.sleep(0.1)
            service.stop()
        spans = [span for span in collector.spans if span.trace == TRACE]
        found = {name: sum(span.name == name for span in spans) for name in {s.name for s in spans}}
        attempts = [name for name in found if name.startswith("attempt ")]
        assert found["POST /rme/v1/messages"] == MESSAGES
        assert found["receipt delivered"] == MESSAGES
        assert sum(found[name] for name in attempts) == MESSAGES
        assert collector.named("claim")
        assert {span.parent for span in spans if span.name.startswith("POST ")} == {PARENT}
