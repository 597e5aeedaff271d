"""Sending behind a backlog, and from many organizations. `python -m bench backlog`.

BENCH_BACKLOG and BENCH_ORGANIZATIONS make it smaller.
"""

import os
import statistics
import time
from datetime import UTC, datetime
from functools import partial
from multiprocessing.synchronize import Barrier

from bench.scene import Scene, free_port, processes, taken, wait_for_port
from bench.together import seconds_together

WAITING = int(os.environ.get("BENCH_BACKLOG", "1000000"))
MANY = int(os.environ.get("BENCH_ORGANIZATIONS", "10000"))
SENT = 20_000
"""So many are sent of a backlog."""
EACH = 5
"""So many wait for each of many organizations."""

_FILL = """
WITH made AS (
  SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint + i / 1000), 12, '0') || '7'
      || substr(md5(i || %(salt)s), 1, 3) || '8' || substr(md5(i || %(salt)s), 4, 15))::uuid AS id,
    i, (%(organizations)s::text[])[i %% %(count)s + 1] AS organization_id,
    (%(contacts)s::text[])[i %% %(count)s + 1] AS contact_id,
    (%(versions)s::bigint[])[i %% %(count)s + 1] AS version_id,
    jsonb_build_object('variables', jsonb_build_object('note', md5(i::text)), 'sender',
      jsonb_build_object('domain', 'bench.example', 'local_part', 'a', 'name', '')) AS body
  FROM generate_series(0, %(rows)s - 1) i
), messages AS (
  INSERT INTO messaging_message
    (id, organization_id, category, channels, strategy, template, language, test)
  SELECT id, organization_id, 'TRANSACTIONAL', ARRAY[%(channel)s], 'FIRST', 'note', 'en_US', false
  FROM made
), contents AS (
  INSERT INTO messaging_messagecontent (id, organization_id, body, size)
  SELECT id, organization_id, body, length(body::text) FROM made
)
INSERT INTO messaging_delivery (id, organization_id, message_id, contact_id, position, category,
  priority, channels, channel, template_version_id, status, due_at, expires_at, fence, tries, test)
SELECT id, organization_id, id, contact_id, 0, 'TRANSACTIONAL', %(priority)s, '{}', %(channel)s,
  version_id, 'ACCEPTED', now() - interval '1 hour' + i * interval '1 ms',
  now() + interval '1 day', 0, 0, false
FROM made
"""


def backlog(scene: Scene) -> None:
    """Send behind a million that wait, and from ten thousand organizations with a few each."""
    from bench.report import say

    port = free_port()
    with processes([["bench.sinks", "--port", str(port)]]):
        wait_for_port(port)
        scene.mail_by(port)
        own = [scene.own()]
        _analyze()  # while all is empty, as in a service whose queue usually is
        _fill(own, SENT)
        alone = _drain(port, SENT)
        say("backlog: nothing else waits", alone, "mails/s")
        scene.clear()
        _fill(own, WAITING)
        claimed = [_claim_beside(scene) for _ in range(21)]
        usual, worst = statistics.median(claimed), max(claimed)
        note = f"the first in a new connection {claimed[0]:.1f}, the slowest {worst:.1f}"
        say("backlog: TRANSACTIONAL SMS until claimed", usual, "ms", note)
        behind = _drain(port, SENT)
        say(f"backlog: {WAITING:,} wait", behind, "mails/s", f"{behind / alone:.0%}")
        scene.clear()
        people = scene.many(MANY, port)
        _fill(people[:10], EACH * MANY)
        few = _drain(port, EACH * MANY)
        say("backlog: 10 organizations", few, "mails/s")
        scene.clear()
        _fill(people, EACH * MANY)
        many = _drain(port, EACH * MANY)
        say(f"backlog: {MANY:,} organizations", many, "mails/s", f"{many / few:.0%} of 10")


def _fill(
    people: list[tuple[str, str, int]], rows: int, channel: str = "EMAIL", priority: int = 1
) -> None:
    """Store messages that are ready, in turn for each (organization, contact, template version)."""
    from django.db import connection

    organizations, contacts, versions = (list(column) for column in zip(*people, strict=True))
    with connection.cursor() as cursor:
        cursor.execute(
            _FILL,
            {
                "organizations": organizations,
                "contacts": contacts,
                "versions": versions,
                "count": len(people),
                "rows": rows,
                "channel": channel,
                "priority": priority,
                "salt": str(datetime.now(UTC)),
            },
        )


def _analyze() -> None:
    from django.db import connection

    from messaging.models import PARTITIONED

    with connection.cursor() as cursor:
        for model in PARTITIONED:
            cursor.execute(f"ANALYZE {model._meta.db_table}")


def _drain(port: int, count: int) -> float:
    """Send so many by one worker process, which does not stop before; return mails a second."""
    before = taken(port)
    took = seconds_together(1, partial(_send, count))
    sent = taken(port) - before
    assert sent >= count, sent
    return sent / took


def _send(count: int, start: Barrier) -> None:
    import django

    django.setup()
    from messaging.delivery import claims, tasks
    from messaging.delivery.sending_process import SendingProcess
    from messaging.models import Delivery
    from rme.core.outbound import outbound_transport
    from rme.core.process import memory

    memory.freeze_startup_objects()
    memory.keep_memory()
    claims.ready("EMAIL")
    waiting = Delivery.objects.filter(status="ACCEPTED")
    goal = waiting.count() - count
    process = SendingProcess()
    start.wait(60)
    while waiting.count() > goal:
        tasks.send("EMAIL", outbound_transport(), process)


def _claim_beside(scene: Scene) -> float:
    """Return the milliseconds from a commit until that message is claimed on another channel."""
    from messaging.delivery import claims
    from messaging.models import Delivery

    _fill([scene.own()], 1, "SMS", priority=0)
    started = time.perf_counter()
    ((priority, organization_id), *_) = claims.ready("SMS")
    (claimed,) = claims.claim(organization_id, "SMS", priority).deliveries
    took = (time.perf_counter() - started) * 1000
    Delivery.objects.filter(pk=claimed.id).update(status="SENT", due_at=None)
    return took
