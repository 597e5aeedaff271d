"""`python -m bench [accept] [smtp] [whole] [memory]`: measure, each beside its reference."""

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime

from bench import load
from bench import minutes as counting
from bench.accepting import accept, accept_in_process
from bench.backlog import backlog
from bench.bot import bot
from bench.console import console
from bench.days import days
from bench.engines import engines
from bench.failover import failover
from bench.history import history
from bench.logins import logins
from bench.push import push
from bench.receipts import receipts
from bench.retention import retention
from bench.scene import LINE, Scene, free_port, processes, taken, wait_for_port, web
from bench.sending import send_all
from bench.singles import singles
from bench.steps import steps
from bench.storage import storage
from bench.together import seconds_together
from bench.webhooks import webhooks

SECONDS = float(os.environ.get("BENCH_SECONDS", "6"))


def say(what: str, value: float, unit: str, note: str = "") -> None:
    print(f"{what:<44} {value:>10,.0f} {unit:<12} {note}", flush=True)


def smtp(scene: Scene) -> None:
    """From rows in the database to a mail server, against Django's backend sending alone."""
    from django.core.mail import EmailMultiAlternatives
    from django.core.mail.backends.smtp import EmailBackend

    from rme.core.cache import TtlCache

    port = free_port()
    with processes([["bench.sinks", "--port", str(port)]]):
        wait_for_port(port)
        scene.mail_by(port)
        TtlCache.clear_all()
        text = LINE * 5
        backend = EmailBackend(host="127.0.0.1", port=port)
        backend.open()
        count, started = 0, time.perf_counter()
        while time.perf_counter() - started < SECONDS:
            mail = EmailMultiAlternatives(
                f"A note for Zoë {count}", text, "a@bench.example", ["p@x.example"]
            )
            mail.attach_alternative(f"<p>{text}</p>", "text/html")
            backend.send_messages([mail])
            count += 1
        django = count / (time.perf_counter() - started)
        backend.close()

        alone = drain(scene, port, senders=1)
        both = drain(scene, port, senders=2)
    say("SMTP: Django's backend, alone", django, "mails/s")
    say("SMTP: rme, rows to outcomes, one process", alone, "mails/s", f"{alone / django:.1f} x")
    say("SMTP: rme, as deployed (two processes)", both, "mails/s", f"{both / django:.1f} x Django")


def drain(scene: Scene, port: int, *, senders: int) -> float:
    """Send what waits in the database, by the worker's own task; gives mails a second."""
    from django.db import connection

    accept_in_process(scene, 20_000)
    before = taken(port)
    took = seconds_together(senders, send_all)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM messaging_delivery WHERE status <> 'SENT'")
        assert cursor.fetchone()[0] == 0
    assert taken(port) == before + 20_000
    return 20_000 / took


def _service(port: int, sink: int) -> list[list[str]]:
    workers = ["rme.workers", "--beat", "--concurrency", os.environ.get("WORKER_CONCURRENCY", "2")]
    web_command = web("rme.asgi:application", port)
    return [["bench.sinks", "--port", str(sink)], web_command, workers]


def _through(scene: Scene, port: int, sink: int, count: int) -> float:
    """Send messages the whole way, and give how many a second: until the last outcome stands."""
    from django.db import connection

    before = taken(sink)
    body = json.dumps({"messages": [scene.body(i) for i in range(500)]}).encode()
    request = load.request_bytes("/rme/v1/messages/bulk", body, scene.token, port=port)
    started = time.perf_counter()
    load.send(port, [request] * (count // 500), connections=2)
    while taken(sink) < before + count:
        time.sleep(0.02)
    with connection.cursor() as cursor:
        while True:
            cursor.execute("SELECT count(*) FROM messaging_delivery WHERE status <> 'SENT'")
            if cursor.fetchone()[0] == 0:
                break
            time.sleep(0.02)
    took = time.perf_counter() - started
    assert taken(sink) == before + count
    return count / took


def whole(scene: Scene) -> None:
    """The whole way: HTTP, gates, Celery, render, a mail server, outcomes."""
    port, sink = free_port(), free_port()
    scene.mail_by(sink)
    env = {"OUTBOUND_OPEN_HOSTS": f"127.0.0.1:{sink}"}
    with processes(_service(port, sink), **env):
        wait_for_port(port)
        wait_for_port(sink)
        _through(scene, port, sink, 2000)
        rate = _through(scene, port, sink, 20_000)
    say("whole way, bulk accept to outcome", rate, "messages/s")


def memory(scene: Scene) -> None:
    """The memory of each process, before and after 100,000 messages."""
    port, sink = free_port(), free_port()
    scene.mail_by(sink)
    env = {"OUTBOUND_OPEN_HOSTS": f"127.0.0.1:{sink}"}
    with processes(_service(port, sink), **env) as running:
        wait_for_port(port)
        wait_for_port(sink)
        _through(scene, port, sink, 5000)
        tree = [child for parent in running[1:] for child in (parent, *parent.children(True))]
        before = {child.pid: child.memory_info().rss for child in tree}
        _through(scene, port, sink, 100_000)
        for child in tree:
            name = " ".join(child.cmdline()[2:5])[:28]
            was, is_now = before[child.pid] / 2**20, child.memory_info().rss / 2**20
            say(f"memory of {name}", is_now, "MiB", f"{was:,.0f} MiB before")


def minutes(scene: Scene) -> None:
    """The processor time of the job that counts minutes, as a share of the whole way's."""
    from messaging.models import MinuteCount

    port, sink = free_port(), free_port()
    scene.mail_by(sink)
    env = {"OUTBOUND_OPEN_HOSTS": f"127.0.0.1:{sink}"}
    count = 20_000
    with processes(_service(port, sink), **env) as running:
        wait_for_port(port)
        wait_for_port(sink)
        started = datetime.now(UTC)
        _through(scene, port, sink, 2000)
        before = counting.service_seconds(running[1:])
        _through(scene, port, sink, count)
        way = counting.service_seconds(running[1:]) - before
    MinuteCount.objects.all().delete()  # of earlier runs
    spent = counting.count_twice(started)
    rows = MinuteCount.objects.filter(organization_id="bench", outcome="sent")
    counted = sum(rows.values_list("count", flat=True))
    assert counted == 2000 + count
    say("whole way: CPU of a message", way / count * 1e6, "µs")
    note = f"{spent / counted / (way / count):.2%} of the whole way; the aim is 2 %"
    say("minutes, counted twice: CPU of a message", spent / counted * 1e6, "µs", note)


SECTIONS: dict[str, Callable[[Scene], None]] = {
    "accept": accept,
    "smtp": smtp,
    "steps": steps,
    "whole": whole,
    "singles": singles,
    "memory": memory,
    "minutes": minutes,
    "history": history,
    "bot": bot,
    "receipts": receipts,
    "push": push,
    "failover": failover,
    "engines": engines,
    "webhooks": webhooks,
    "backlog": backlog,
    "logins": logins,
    "console": console,
    "storage": storage,
    "retention": retention,
    "days": days,
}


def main() -> None:
    os.environ.setdefault("OUTBOUND_OPEN_HOSTS", "127.0.0.1")
    chosen = sys.argv[1:] or list(SECTIONS)
    scene = Scene()
    for name in chosen:
        scene.clear()
        SECTIONS[name](scene)


if __name__ == "__main__":
    main()
