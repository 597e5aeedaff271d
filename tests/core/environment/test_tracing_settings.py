"""TRACING, where the libraries are there and where they are missing."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from rme.core.environment import tracing_settings


def test_tracing_needs_its_libraries(monkeypatch):
    assert tracing_settings.check(is_on=True)
    monkeypatch.setattr(tracing_settings, "_PACKAGES", ("opentelemetry_that_is_missing.sdk",))
    assert not tracing_settings.check(is_on=False)
    with pytest.raises(ImproperlyConfigured, match=r"requirements-tracing\.lock"):
        tracing_settings.check(is_on=True)
