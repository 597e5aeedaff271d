"""Structured logs: one line an event, with the request id and without personal data."""

import logging
import logging.config
from contextvars import ContextVar
from typing import Any

import structlog

request_id: ContextVar[str] = ContextVar("request_id", default="")


def add_request_id(_: Any, __: str, event: dict[str, Any]) -> dict[str, Any]:
    """Put the id of the request in hand on a log line."""
    if current := request_id.get():
        event["request_id"] = current
    return event


def logging_config(*, level: str, json: bool) -> dict[str, Any]:
    """Give the logging configuration, and set structlog up to go through it."""
    shared: list[Any] = [
        add_request_id,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    renderer: Any = (
        structlog.processors.JSONRenderer() if json else structlog.dev.ConsoleRenderer(colors=False)
    )
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.format_exc_info,
                    renderer,
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # What fails unforeseen is logged by rme.core.api, with the request id.
            "django.request": {"level": "CRITICAL"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
        },
    }
    logging.config.dictConfig(config)
    return config
