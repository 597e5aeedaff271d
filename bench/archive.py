"""The archive: messages moved to files a second, and reading of a million that are there.

BENCH_ARCHIVED makes it smaller. The files are in a folder below /var/tmp, on the same disk as the
database.
"""

import os
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

from bench.scene import Scene, free_port, processes, wait_for_port

COUNT = int(os.environ.get("BENCH_ARCHIVED", "1000000"))
MOVED = min(COUNT, 20_000)
DAYS = 100
PART = 10_000
LOOK_UPS = 200


def archive(scene: Scene) -> None:
    """Move messages from PostgreSQL, then read by id and in pages from a million."""
    from django.conf import settings

    from messaging.models import ArchiveFile, ArchiveProgress
    from rme.core.environment.archive_settings import StoreSettings

    with tempfile.TemporaryDirectory(prefix="rme-bench-", dir="/var/tmp") as name:
        settings.ARCHIVE = StoreSettings(Path(name).as_uri(), {})
        try:
            _move(scene)
            _read(scene)
        finally:
            settings.ARCHIVE = None
            ArchiveFile.objects.all().delete()
            ArchiveProgress.objects.all().delete()


def _move(scene: Scene) -> None:
    from django.db import connection

    from bench.accepting import accept_in_process
    from bench.report import say
    from bench.sending import send_all
    from bench.together import seconds_together
    from messaging.archive import moving
    from messaging.models import ArchiveFile, Message, MessageContent

    port = free_port()
    with processes([["bench.sinks", "--port", str(port)]]):
        wait_for_port(port)
        scene.mail_by(port)
        accept_in_process(scene, MOVED)
        seconds_together(2, send_all)
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {MessageContent._meta.db_table}")
        cursor.execute("ANALYZE")
    started, cpu = time.perf_counter(), time.process_time()
    later = datetime.now(UTC) + timedelta(days=1)
    assert moving.move("bench", later, time.monotonic() + 3600)
    took, spent = time.perf_counter() - started, time.process_time() - cpu
    assert Message.objects.count() == 0
    size = sum(ArchiveFile.objects.values_list("size", flat=True))
    say("archive: messages moved by one process", MOVED / took, "messages/s")
    say("archive: CPU of the process", spent / MOVED * 1e6, "µs/message")
    say("archive: size in the file", size / MOVED, "bytes/message")


def _read(scene: Scene) -> None:
    """Copy the file's messages to other days until there are COUNT, and read them."""
    from bench.history import timed
    from bench.report import say
    from messaging.archive import contact_files, reading
    from messaging.models import ArchiveFile
    from messaging.reports import queries
    from rme.core.db import clock

    pattern = contact_files.read(ArchiveFile.objects.order_by("pk")[0])
    ArchiveFile.objects.all().delete()
    keys: list[UUID] = []
    today = clock.now().replace(hour=1, minute=0, second=0, microsecond=0)
    for part in range(COUNT // PART):
        keys += _copy(pattern, today - timedelta(days=DAYS * (part + 1) * PART / COUNT))
    chosen = Random(7).sample(keys, LOOK_UPS)
    took = []
    for key in chosen:
        started = time.perf_counter()
        assert reading.find("bench", key) is not None
        took.append((time.perf_counter() - started) * 1000)
    took.sort()
    note = f"p99 {took[int(LOOK_UPS * 0.99)]:.1f} ms"
    print(f"archive: look-up by id, p50, of {COUNT:<12,} {took[LOOK_UPS // 2]:>10.1f} ms  {note}")

    def page(**fields: Any) -> float:
        wanted = queries.HistoryFilter(**fields, limit=50)
        return timed(lambda: queries.history("bench", wanted))

    shown = {"no filter": page(), "deep": page(cursor=keys[COUNT // 2])}
    person = reading.find("bench", keys[0])
    assert person is not None
    shown["contactId"] = page(contact_id=person.deliveries[0].contact_id)
    shown["status of none"] = page(status="UNKNOWN")
    for name, milliseconds in shown.items():
        print(f"archive: a page of 50, {name:<22} {milliseconds:>10.1f} ms", flush=True)
    size = sum(ArchiveFile.objects.values_list("size", flat=True))
    say("archive: all files", size / 2**20, "MiB", f"{ArchiveFile.objects.count()} files")


def _copy(pattern: Any, day: datetime) -> list[UUID]:
    """Write the messages of a file again, with ids of another time; return their ids."""
    import pyarrow as pa

    from messaging.archive import hand_over
    from rme.core import ids

    count = pattern.num_rows
    start = ids.at_least(day).int
    keys = [UUID(int=start + (i << 80)) for i in range(count)]  # one each millisecond
    table = pattern.set_column(0, "id", pa.array([str(key) for key in keys]))
    assert hand_over.write("bench", table, erased=[]) is not None
    return keys
