"""The tracer is set by OpenTelemetry's own variables."""

import pytest

from rme.core.telemetry import opentelemetry_tracer
from rme.core.telemetry.tracing import SpanKind
from tests.fakes.otlp import Collector


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "rme"),
        ({"OTEL_SERVICE_NAME": "mail"}, "mail"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "deployment.environment=eu,service.name=mail"}, "mail"),
    ],
)
def test_service_has_the_configured_name(monkeypatch, variables, name):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.rstrip("/"))
        tracer = opentelemetry_tracer.build()
        tracer.begin("step", SpanKind.INTERNAL).end()
        tracer.stop()
        assert collector.services == {name}


def test_the_key_of_a_collector_comes_from_the_settings(monkeypatch, settings):
    settings.OTEL_EXPORTER_OTLP_HEADERS = "api-key=hidden,x-tenant=a%20b"
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.rstrip("/"))
        tracer = opentelemetry_tracer.build()
        tracer.begin("step", SpanKind.INTERNAL).end()
        tracer.stop()
        [seen] = collector.seen
    assert (seen.header("api-key"), seen.header("x-tenant")) == ("hidden", "a b")
