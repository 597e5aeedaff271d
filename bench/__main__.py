"""`python -m bench [accept] [smtp] [whole] [memory]`: measure, each beside its reference."""

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime

from bench import minutes as counting
from bench.accepting import accept
from bench.archive import archive
from bench.attacks import attacks
from bench.backlog import backlog
from bench.bot import bot
from bench.console import console
from bench.days import days
from bench.engines import engines
from bench.failover import failover
from bench.history import history
from bench.logins import logins
from bench.metrics import metrics
from bench.push import push
from bench.receipts import receipts
from bench.report import say
from bench.request_log import request_log
from bench.retention import retention
from bench.router import router
from bench.scene import Scene, free_port, processes, wait_for_port
from bench.singles import singles
from bench.smtp import smtp
from bench.steps import steps
from bench.storage import storage
from bench.tracing import tracing
from bench.typing_keys import typing
from bench.webhooks import webhooks
from bench.whole import send_through, service, whole


def memory(scene: Scene) -> None:
    """The memory of each process, before and after 100,000 messages."""
    port, sink = free_port(), free_port()
    scene.mail_by(sink)
    env = {"OUTBOUND_OPEN_HOSTS": f"127.0.0.1:{sink}"}
    with processes(service(port, sink), **env) as running:
        wait_for_port(port)
        wait_for_port(sink)
        send_through(scene, port, sink, 5000)
        tree = [child for parent in running[1:] for child in (parent, *parent.children(True))]
        before = {child.pid: child.memory_info().rss for child in tree}
        send_through(scene, port, sink, 100_000)
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
    with processes(service(port, sink), **env) as running:
        wait_for_port(port)
        wait_for_port(sink)
        started = datetime.now(UTC)
        send_through(scene, port, sink, 2000)
        before = counting.service_seconds(running[1:])
        send_through(scene, port, sink, count)
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
    "router": router,
    "steps": steps,
    "whole": whole,
    "singles": singles,
    "memory": memory,
    "minutes": minutes,
    "metrics": metrics,
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
    "typing": typing,
    "storage": storage,
    "retention": retention,
    "archive": archive,
    "days": days,
    "request_log": request_log,
    "tracing": tracing,
    "attacks": attacks,
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
