"""The bytes and the WAL of a message, from accept to its outcome: `python -m bench storage`.

BENCH_STORED makes it smaller. WAL is measured from a checkpoint on, so the images of full pages
that the first change of each page writes are in it; they stand in a line of their own.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from bench.accepting import accept_in_process
from bench.scene import Scene, free_port, processes, taken, wait_for_port
from bench.sending import send_all
from bench.together import seconds_together

COUNT = int(os.environ.get("BENCH_STORED", "50000"))
ROWS = 12
"""So many kinds of WAL records are printed, the largest ones."""
_SLOT = "bench_storage"

_SIZES = """
SELECT replace(p.parent, 'messaging_', ''), sum(pg_relation_size(relid)),
  sum(pg_table_size(relid) - pg_relation_size(relid)), sum(pg_indexes_size(relid))
FROM unnest(%s::text[]) p(parent), LATERAL pg_partition_tree(p.parent::regclass)
WHERE isleaf GROUP BY p.parent ORDER BY sum(pg_total_relation_size(relid)) DESC
"""
_INDEXES = """
SELECT root.relname, sum(pg_relation_size(leaf.relid))
FROM unnest(%s::text[]) p(parent) JOIN pg_index x ON x.indrelid = p.parent::regclass
JOIN pg_class root ON root.oid = x.indexrelid, LATERAL pg_partition_tree(x.indexrelid) leaf
WHERE leaf.isleaf GROUP BY root.relname ORDER BY 2 DESC
"""
_UPDATES = """
SELECT replace(p.parent, 'messaging_', ''), sum(n_tup_upd), sum(n_tup_hot_upd)
FROM unnest(%s::text[]) p(parent), LATERAL pg_partition_tree(p.parent::regclass)
JOIN pg_stat_user_tables s USING (relid) WHERE isleaf GROUP BY p.parent HAVING sum(n_tup_upd) > 0
"""
_RECORD = re.compile(r"^(\S+)\s+(\d+) \( *[\d.]+\)\s+(\d+) \( *[\d.]+\)\s+(\d+) \(", re.MULTILINE)


def storage(scene: Scene) -> None:
    """Accept and send messages, and print what they take by table, index, column and record."""
    port = free_port()
    _query("SELECT pg_create_physical_replication_slot(%s, true)", _SLOT)
    try:
        with processes([["bench.sinks", "--port", str(port)]]):
            wait_for_port(port)
            scene.mail_by(port)
            _measure(scene, port)
    finally:
        _query("SELECT pg_drop_replication_slot(%s)", _SLOT)


def _measure(scene: Scene, port: int) -> None:
    from bench.report import say

    _query("SELECT pg_stat_reset()")
    _query("CHECKPOINT")
    start = _position()
    accept_in_process(scene, COUNT)
    accepted = _position()
    _send(port)
    sent = _position()
    assert _query("SELECT count(*) FROM messaging_delivery WHERE status = 'SENT'") == [(COUNT,)]
    total = _sizes()
    say("storage: bytes of a message", total / COUNT, "bytes", "the aim is 1,300")
    say("storage: WAL of accept", (accepted - start) / COUNT, "bytes")
    say("storage: WAL of sending", (sent - accepted) / COUNT, "bytes")
    say("storage: WAL of a message", (sent - start) / COUNT, "bytes", "the aim is 2,400")
    _records(start, sent)
    _columns()


def _send(port: int) -> None:
    before = taken(port)
    seconds_together(2, send_all)
    assert taken(port) == before + COUNT


def _sizes() -> int:
    """Print the bytes a message by table and by index; return the bytes of all messages."""
    total = 0
    tables = _tables()
    print(f"{'bytes a message':<28} {'rows':>8} {'TOAST, maps':>12} {'indexes':>8}")
    for name, heap, beside, indexes in _query(_SIZES, tables):
        total += heap + beside + indexes
        print(f"{name:<28} {heap / COUNT:>8.0f} {beside / COUNT:>12.0f} {indexes / COUNT:>8.0f}")
    for name, size in _query(_INDEXES, tables):
        if size > COUNT:
            print(f"  {name:<40} {size / COUNT:>15.0f}")
    for name, updated, hot in _query(_UPDATES, tables):
        print(f"updates of {name}, a message: {updated / COUNT:.2f}, HOT: {hot / COUNT:.2f}")
    return int(total)


def _records(start: int, end: int) -> None:
    """Print the WAL by kind of record, if pg_waldump is beside the server's programs."""
    settings = dict(_query("SELECT name, setting FROM pg_config"))
    program = Path(settings["BINDIR"]) / "pg_waldump"
    [(data,)] = _query("SELECT current_setting('data_directory')")
    if not program.exists():
        return
    libraries = f"{settings['LIBDIR']}:{program.parent.parent / 'libs'}"
    command = [str(program), "--stats=record", f"--path={data}/pg_wal"]
    done = subprocess.run(
        [*command, f"--start={_text(start)}", f"--end={_text(end)}"],
        env={"LD_LIBRARY_PATH": libraries},
        capture_output=True,
        check=True,
        text=True,
    )
    found = [(name, *(int(n) for n in numbers)) for name, *numbers in _RECORD.findall(done.stdout)]
    print(f"{'WAL a message':<28} {'records':>8} {'bytes':>12} {'images':>8}")
    for name, count, size, images in sorted(found, key=lambda row: -row[2] - row[3])[:ROWS]:
        print(f"{name:<28} {count / COUNT:>8.2f} {size / COUNT:>12.0f} {images / COUNT:>8.0f}")


def _columns() -> None:
    """Print the mean bytes of each column; null columns take none, and no line."""
    from messaging.models import PARTITIONED

    for model in PARTITIONED:
        names = [field.column for field in model._meta.local_fields]
        sums = ", ".join(f'sum(pg_column_size("{name}"))' for name in names)
        [sizes] = _query(f"SELECT count(*), {sums} FROM {model._meta.db_table}")
        rows = sizes[0]
        shown = [f"{n} {size / rows:.0f}" for n, size in zip(names, sizes[1:], strict=True) if size]
        print(f"{model._meta.model_name}, {rows / COUNT:.1f} a message: {', '.join(shown)}")


def _tables() -> list[str]:
    from messaging.models import PARTITIONED

    return [model._meta.db_table for model in PARTITIONED]


def _position() -> int:
    [(position,)] = _query("SELECT pg_current_wal_lsn() - '0/0'")
    return int(position)


def _text(position: int) -> str:
    """Return a position in the WAL as PostgreSQL writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def _query(statement: str, *values: Any) -> list[Any]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []
