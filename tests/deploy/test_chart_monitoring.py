"""What the chart makes for Prometheus and Grafana: the files of monitoring/, unchanged."""

import json

import pytest
import yaml

from rme.celery import QUEUES
from tests.deploy import helm
from tests.deploy.helm import CHART, of_kind, template
from tests.deploy.test_chart import pods

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
    assert kinds & {"PodMonitor", "ServiceMonitor", "PrometheusRule", "ConfigMap"} == set()


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
    jobs = []
    for name in ("PodMonitor msg-rme-pods", "ServiceMonitor msg-rme-router"):
        kind, _, _ = name.partition(" ")
        (monitor,) = of_kind(manifests, kind).values()
        (endpoint,) = monitor["spec"].get("podMetricsEndpoints") or monitor["spec"]["endpoints"]
        label, *_ = endpoint["relabelings"]
        assert label["targetLabel"] == "job"
        jobs.append(label["replacement"])
        assert f"{monitor['kind']} {monitor['metadata']['name']}" == name
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        assert (endpoint["port"], endpoint["path"]) == ("http", "/metrics")
        assert endpoint["authorization"]["credentials"]["key"] == "METRICS_TOKEN"
    assert jobs == ["rme", "rme-router"]
    alerts = (MONITORING / "alerts.yaml").read_text()
    assert all(f'up{{job="{name}"}}' in alerts for name in jobs)


def test_web_pods_and_workers_are_scraped_and_their_labels_are_alike():
    manifests = template(**EVERYTHING)
    (monitor,) = of_kind(manifests, "PodMonitor").values()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["relabelings"][1:] == [{"action": "labeldrop", "regex": "container|endpoint"}]
    selector = monitor["spec"]["selector"]
    assert selector["matchExpressions"] == [
        {"key": "app.kubernetes.io/component", "operator": "NotIn", "values": ["router"]}
    ]
    scraped = set()
    for pod in pods(manifests).values():
        labels = pod["metadata"]["labels"]
        component = labels["app.kubernetes.io/component"]
        assert selector["matchLabels"].items() <= labels.items()
        (container,) = pod["spec"]["containers"]
        if container.get("ports") == [{"name": "http", "containerPort": 8000}]:
            scraped.add(component)
        env = {each["name"]: each.get("value") for each in container["env"]}
        assert env.get("METRICS_PORT") == ("8000" if "worker" in component else None)
    assert scraped == {"web", "router", *(f"worker-{each}" for each in QUEUES)}
    policy = of_kind(manifests, "NetworkPolicy")["NetworkPolicy msg-rme-workers"]["spec"]
    (expression,) = policy["podSelector"]["matchExpressions"]
    assert {*expression["values"]} == scraped - {"web", "router"}
    assert policy["ingress"] == [
        {"from": [{"namespaceSelector": {}}], "ports": [{"port": "http"}]},
    ]


def test_keda_removes_no_worker_for_want_of_data():
    keda = template(worker={"autoscaling": {"source": "keda"}}, database={"maxConnections": 400})
    triggers = [each["spec"]["triggers"] for each in of_kind(keda, "ScaledObject").values()]
    assert [each[0]["metadata"]["ignoreNullValues"] for each in triggers] == ["false"] * 4
