"""The statements of a window by psycopg's own pipelines and prepared statements.

It has the interface of `rme.core.db.prepared_statements`, but neither its time limits nor its order
of statements between cursors and pipelines.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import pq


def use() -> None:
    """Have this process execute the statements of a window by psycopg."""
    from django.db import connection
    from django.db import transaction as django_transaction

    from rme.core.db import prepared_statements

    class PendingRows(prepared_statements.PendingRows):
        __slots__ = ("cursor",)

        def rows(self) -> Any:
            if self.result is None:
                self.result = self.cursor.fetchall()
            return self.result

    def raw() -> Any:
        connection.ensure_connection()
        return connection.connection

    def idle() -> bool:
        return bool(raw().pgconn.transaction_status == pq.TransactionStatus.IDLE)

    @contextmanager
    def transaction() -> Iterator[None]:
        with django_transaction.atomic():
            if not idle():
                yield
                return
            with raw().pipeline():
                yield
                raw().commit()  # with the last statements, and `atomic` finds nothing left to do

    @contextmanager
    def pipeline() -> Iterator[None]:
        if connection.in_atomic_block or not idle():
            with django_transaction.atomic():
                yield
            return
        with raw().pipeline():
            yield

    def run(text: str, parameters: Sequence[Any]) -> Any:
        values = [prepared_statements._text(value) for value in parameters]
        texts = [None if value is None else value.decode() for value in values]
        return raw().cursor().execute(text, texts, prepare=True)

    def send(text: str, parameters: Sequence[Any] = (), *, setting: str = "") -> PendingRows:
        pending = PendingRows(text)
        if setting and idle() and raw().pgconn.pipeline_status == pq.PipelineStatus.OFF:
            with raw().pipeline():  # the setting holds for this transaction only
                run(setting, ())
                pending.cursor = run(text, parameters)
        else:
            if setting:
                run(setting, ())
            pending.cursor = run(text, parameters)
        return pending

    def execute(text: str, parameters: Sequence[Any] = (), *, setting: str = "") -> Any:
        pending = send(text, parameters, setting=setting)
        return pending.rows() if pending.cursor.description else []

    replacements = {
        "transaction": transaction, "pipeline": pipeline, "send": send, "execute": execute,
        "flush": lambda: None,
    }  # fmt: skip
    for name, replacement in replacements.items():
        setattr(prepared_statements, name, replacement)


def alone(count: int) -> dict[str, float]:
    """Return the seconds that transactions of four small statements each take, as one pipeline."""
    from rme.core.db import prepared_statements

    wall, cpu = time.perf_counter(), time.process_time()
    for number in range(count):
        with prepared_statements.pipeline():
            for place in range(4):
                prepared_statements.send(f"SELECT %s::int + {place}", [number])
    return {
        "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "count": count
    }  # fmt: skip
