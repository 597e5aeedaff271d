"""What the chart refuses before anything is installed, and by which words."""

import pytest

from tests.deploy import helm
from tests.deploy.helm import refusal, template

pytestmark = pytest.mark.skipif(not (helm.HELM and helm.SCHEMAS), reason=helm.MISSING)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"settings": {"DATABASE_POL": 3}}, "additional properties 'DATABASE_POL' not allowed"),
        ({"settings": {"DATABASE_POOL": "ten"}}, "'/settings/DATABASE_POOL': got string, want int"),
        (
            {"settings": {"BASE_URL": "rme.example.org"}},
            "'/settings/BASE_URL': 'rme.example.org' do",
        ),
        ({"settings": {"PARTITION_PERIOD": "year"}}, "must be one of 'day', 'week', 'month'"),
        ({"secrets": {"existingSecret": ""}}, "'/secrets/existingSecret': '' does not match"),
        ({"web": {"replicas": 0}}, "'/web/replicas': minimum: got 0, want 1"),
        (
            {"web": {"drainSeconds": 25}},
            "web.terminationGracePeriodSeconds is 30: after web.drainSeconds (25) requests",
        ),
        ({"web": {"autoscaling": {"min": 13}}}, "web.autoscaling: min is 13 and max 5."),
        (
            {"web": {"autoscaling": {"max": 12}}},
            "opens up to 316 connections, and database.maxConnections is 200: allow fewer pods",
        ),
        (
            {"worker": {"autoscaling": {"source": "keda"}}},
            "connections, and database.maxConnections is 200",
        ),
        (
            {"workers": {"default": {"autoscaling": {"source": "keda"}}}},
            "workers.default.autoscaling: only a worker of one of the queues email, sms, push or w",
        ),
        (
            {"extraEnv": [{"name": "PGPASSWORD", "value": "x"}]},
            "extraEnv.PGPASSWORD: a secret comes by valueFrom.secretKeyRef",
        ),
        (
            {"extraEnv": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "x"}]},
            "extraEnv.AWS_SECRET_ACCESS_KEY: a secret comes by valueFrom.secretKeyRef",
        ),
        # Its type is checked under `settings` alone.
        ({"extraEnv": [{"name": "LEASE_SECONDS", "value": "x"}]}, "'/extraEnv/0/name': 'not'"),
        (
            {"workers": {"sms": {"autoscaling": {"max": 2}}}},
            "workers.sms.autoscaling: min is 3 and max 2.",
        ),
        (
            {"extraEnv": [{"name": "PORT", "value": "80"}]},
            "extraEnv must not have PORT: the chart has it.",
        ),
        (
            {"settings": {"TLS_PROXY": 1}, "ingress": {"enabled": True}},
            "ingress.hosts must list a host",
        ),
        (
            {"settings": {"TLS_PROXY": 1}, "httpRoute": {"enabled": True}},
            "httpRoute.parentRefs and httpRoute.hostnames must not be empty",
        ),
        (
            {"router": {"enabled": True}, "settings": {"CELLS": "eu=http://eu.internal"}},
            "settings.CELL name that of this release",
        ),
        # An empty list would let everybody in.
        ({"networkPolicy": {"ingressFrom": []}}, "'/networkPolicy/ingressFrom': minItems: got 0"),
        ({"pod": {"annotations": {"a": True}}}, "'/pod/annotations/a': got boolean, want string"),
        ({"pod": {"labels": {"app.kubernetes.io/component": "x"}}}, "'/pod/labels': 'not' failed"),
        ({"wrokers": {}}, "additional properties 'wrokers' not allowed"),
        (
            {"ingress": {"enabled": True, "hosts": ["rme.example.org"]}},
            "settings.TLS_PROXY must be `forwarded` or `1`",
        ),
    ],
)
def test_wrong_values_are_refused_by_name(values, sentence):
    assert sentence in refusal(**values)


def test_secrets_in_extra_env_are_references():
    reference = {"secretKeyRef": {"name": "others", "key": "password"}}
    extra = [{"name": "PGPASSWORD", "valueFrom": reference}, {"name": "PGSSLMODE", "value": "x"}]
    env = template(extraEnv=extra)[-1]["spec"]["template"]["spec"]["containers"][0]["env"]
    assert [each for each in env if each in extra] == extra


def test_with_a_pooler_any_number_of_pods_is_allowed():
    assert template(web={"autoscaling": {"max": 99}}, settings={"DATABASE_POOLER": "transaction"})
