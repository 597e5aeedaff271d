"""Structured logs: one line for each event, with the ids of request and caller.

They hold no personal data. So exceptions are logged without their messages, which quote values: an
address that a constraint refused, a text that could not be encoded.
"""

import errno
import logging
import logging.config
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import orjson
import structlog

from rme.core.telemetry import tracing

request_id: ContextVar[str] = ContextVar("request_id", default="")
caller: ContextVar[Mapping[str, Any]] = ContextVar("caller", default=MappingProxyType({}))
"""The ids of organization and application of the current call."""


@contextmanager
def about(identifier: str, ids: Mapping[str, Any]) -> Iterator[None]:
    """Let the log lines of the block have the ids of a request and of its caller."""
    of_request, of_caller = request_id.set(identifier), caller.set(ids)
    try:
        yield
    finally:
        request_id.reset(of_request)
        caller.reset(of_caller)


DIAGNOSES = ("sqlstate", "table_name", "column_name", "constraint_name")
"""The attributes of psycopg's `diag` that hold no values of rows."""


def add_ids(_: object, __: str, event: dict[str, object]) -> dict[str, object]:
    """Add the ids of the current request, of its trace and of its caller to a log line."""
    if current := request_id.get():
        event["request_id"] = current
    if traceparent := tracing.active():
        event["trace_id"] = tracing.trace_id(traceparent)
    event.update(caller.get())
    return event


def add_traceback(_: object, __: str, event: dict[str, object]) -> dict[str, object]:
    """Add an exception as its traceback and class, with its causes, and without its message."""
    given = event.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()
    error = given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        event["exception"] = "\n".join(_traceback_lines(error))
    return event


def _traceback_lines(error: BaseException) -> Iterator[str]:
    """Yield the lines of a traceback, causes first, as Python prints it."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield from _traceback_lines(cause)
        yield "which led to:"
    yield "Traceback (most recent call last):"
    yield "".join(traceback.format_tb(error.__traceback__)).rstrip("\n")
    found = getattr(error, "diag", None)
    known = [f"{name}={value}" for name in DIAGNOSES if (value := getattr(found, name, None))]
    if isinstance(error, OSError) and (name := errno.errorcode.get(error.errno or 0)):
        known.append(f"errno={name}")
    yield " ".join([f"{type(error).__module__}.{type(error).__qualname__}", *known])


def name_task(_: object, __: str, event: Any) -> Any:
    """Replace Celery's message of a failed task, which quotes the exception, by the task's name."""
    record: logging.LogRecord = event["_record"]
    if record.name == "celery.app.trace":
        event["event"], event["task"] = "task.failed", getattr(record, "data", {}).get("name")
    return event


def _json(event: dict[str, object], **_: object) -> str:
    return orjson.dumps(event, default=str).decode()


_stamp = structlog.processors.TimeStamper(fmt="iso", utc=True)
SHARED: tuple[Any, ...] = (
    add_ids,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    _stamp,
)


class _Lines(list[dict[str, object]]):
    """The message of a log record that is several lines."""


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """Formats records of one line, and of several."""

    def __init__(self, renderer: Any, **options: Any) -> None:
        super().__init__(**options)
        self.renderer = renderer

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.msg, _Lines):
            return "\n".join(self.renderer(None, "", {**line}) for line in record.msg)
        return super().format(record)


def write_each(name: str, level: int, event: str, lines: Iterable[Mapping[str, object]]) -> None:
    """Write a line of a logger for each of these values, by one record: at a third of the cost."""
    logger = logging.getLogger(name)
    if logger.isEnabledFor(level):
        level_name = logging.getLevelName(level).lower()
        shared = _stamp(None, level_name, {"event": event, "level": level_name, "logger": name})
        logger.log(level, _Lines({**values, **shared} for values in lines))


def formatter(*, json: bool) -> logging.Formatter:
    """Return the formatter of all log lines, ours and those of libraries."""
    renderer: Any = (
        structlog.processors.JSONRenderer(serializer=_json)
        if json
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    last: list[Any] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        add_traceback,
        renderer,
    ]
    return _Formatter(renderer, foreign_pre_chain=[*SHARED, name_task], processors=last)


def logging_config(*, level: str, json: bool) -> dict[str, object]:
    """Configure logging and structlog, and return the configuration of logging."""
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"structured": {"()": formatter, "json": json}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Unexpected exceptions are logged by rme.core.http.api, with the request id.
            "django.request": {"level": "CRITICAL"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
            # It logs each attempt to connect; `database.lost` and `database.back` are logged once.
            "psycopg.pool": {"level": "ERROR"},
        },
    }
    logging.config.dictConfig(config)
    return config
