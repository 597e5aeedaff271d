"""What the chart makes for Prometheus and Grafana: the files of monitoring/, unchanged."""

import json

import pytest
import yaml

from tests.deploy import helm
from tests.deploy.helm import CHART, of_kind, template

pytestmark = pytest.mark.skipif(not (helm.HELM and helm.SCHEMAS), reason=helm.MISSING)

MONITORING = CHART / "monitoring"
CELLS = {"CELL": "eu", "CELLS": ["eu=http://eu.internal", "us=http://us.internal"]}
RULES = ("recording", "alerts")
EVERYTHING = {
    "settings": CELLS,
    "router": {"enabled": True},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboards": {"enabled": True, "annotations": {"grafana_folder": "rme"}},
}


def test_monitoring_objects_are_off_by_default():
    kinds = {each["kind"] for each in template()}
    assert kinds & {"ServiceMonitor", "PrometheusRule", "ConfigMap"} == set()


def test_rules_equal_the_monitoring_files():
    (rule,) = of_kind(template(**EVERYTHING), "PrometheusRule").values()
    files = [yaml.safe_load((MONITORING / f"{name}.yaml").read_text()) for name in RULES]
    assert rule["spec"] == {"groups": [group for file in files for group in file["groups"]]}
    assert rule["metadata"]["labels"]["release"] == "prometheus"


def test_dashboards_equal_the_monitoring_files():
    found = of_kind(template(**EVERYTHING), "ConfigMap")
    dashboards = {path.stem: json.loads(path.read_text()) for path in MONITORING.glob("*.json")}
    assert {
        name: [json.loads(text) for text in each["data"].values()] for name, each in found.items()
    } == {f"ConfigMap msg-rme-dashboard-{name}": [each] for name, each in dashboards.items()}
    for each in found.values():
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert each["metadata"]["annotations"] == {"grafana_folder": "rme"}


def test_scraped_jobs_have_the_names_used_by_alerts():
    manifests = template(**EVERYTHING)
    jobs = {}
    for name, monitor in of_kind(manifests, "ServiceMonitor").items():
        (endpoint,) = monitor["spec"]["endpoints"]
        (label,) = endpoint["relabelings"]
        jobs[name.rpartition("-")[2]] = (label["targetLabel"], label["replacement"])
        selector = monitor["spec"]["selector"]["matchLabels"]
        (service,) = [
            each
            for each in of_kind(manifests, "Service").values()
            if selector.items() <= each["metadata"]["labels"].items()
        ]
        assert [each["name"] for each in service["spec"]["ports"]] == [endpoint["port"]]
    assert jobs == {"web": ("job", "rme"), "router": ("job", "rme-router")}
    alerts = (MONITORING / "alerts.yaml").read_text()
    assert all(f'up{{job="{name}"}}' in alerts for _, name in jobs.values())


def test_keda_removes_no_worker_for_want_of_data():
    keda = template(worker={"autoscaling": {"source": "keda"}}, database={"maxConnections": 400})
    triggers = [each["spec"]["triggers"] for each in of_kind(keda, "ScaledObject").values()]
    assert [each[0]["metadata"]["ignoreNullValues"] for each in triggers] == ["false"] * 4
