"""Whether traces are made (`TRACING`); everything else is set by OpenTelemetry's own variables."""

from importlib.util import find_spec

from django.core.exceptions import ImproperlyConfigured

_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


def check(*, is_on: bool) -> bool:
    """Return whether tracing is on. Raise ImproperlyConfigured if its libraries are missing."""
    if is_on and not all(_is_installed(name) for name in _PACKAGES):
        raise ImproperlyConfigured(
            "TRACING is set, and OpenTelemetry is not installed: install requirements-tracing.lock."
        )
    return is_on


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package above it
        return False
