"""From rows in the database to a mail server, beside clients that only send."""

import os
import shutil
import subprocess
import time

from bench.accepting import accept_in_process
from bench.report import say
from bench.scene import LINE, Scene, free_port, processes, taken, wait_for_port
from bench.sending import send_all
from bench.together import seconds_together

SECONDS = float(os.environ.get("BENCH_SECONDS", "6"))
COUNT = 20_000
MAIL_BYTES = 1500
"""The size of the mails that rme writes here, for Postfix's client."""


def smtp(scene: Scene) -> None:
    """Rows to outcomes, against Django's backend and Postfix's `smtp-source`, which send alone."""
    from rme.core.cache import TtlCache

    port = free_port()
    with processes([["bench.sinks", "--port", str(port)]]):
        wait_for_port(port)
        scene.mail_by(port)
        TtlCache.clear_all()
        django = _django(port)
        postfix = _postfix(port)
        alone = drain(scene, port, senders=1)
        both = drain(scene, port, senders=2)
    say("SMTP: Django's backend, alone", django, "mails/s")
    if postfix:
        say("SMTP: Postfix's smtp-source, ten sessions", postfix, "mails/s")
    else:
        print("SMTP: there is no smtp-source here (it is in Debian's package postfix)")
    beside = f", {alone / postfix:.2f} x Postfix's" if postfix else ""
    note = f"{alone / django:.1f} x Django{beside}"
    say("SMTP: rme, rows to outcomes, one process", alone, "mails/s", note)
    say("SMTP: rme, as deployed (two processes)", both, "mails/s", f"{both / django:.1f} x Django")


def _django(port: int) -> float:
    """Return how many mails a second Django's backend sends over one open connection."""
    from django.core.mail import EmailMultiAlternatives
    from django.core.mail.backends.smtp import EmailBackend

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
    rate = count / (time.perf_counter() - started)
    backend.close()
    return rate


def _postfix(port: int) -> float | None:
    """Return how many mails a second `smtp-source` sends; None where it is not installed.

    It writes one text again and again, over kept sessions and without pipelining.
    """
    program = shutil.which("smtp-source", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        return None
    before, started = taken(port), time.perf_counter()
    subprocess.run(
        [
            *(program, "-d", "-s", "10", "-m", str(COUNT), "-l", str(MAIL_BYTES)),
            *("-f", "a@bench.example", "-t", "p@x.example", f"inet:127.0.0.1:{port}"),
        ],
        check=True,
    )
    rate = COUNT / (time.perf_counter() - started)
    assert taken(port) == before + COUNT
    return rate


def drain(scene: Scene, port: int, *, senders: int) -> float:
    """Send what waits in the database, by the worker's own task; return the mails a second."""
    from django.db import connection

    accept_in_process(scene, COUNT)
    before = taken(port)
    took = seconds_together(senders, send_all)
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM messaging_delivery WHERE status <> 'SENT'")
        assert cursor.fetchone()[0] == 0
    assert taken(port) == before + COUNT
    return COUNT / took
