"""The rendered chart: what every pod has, what can be set, and what is refused."""

import re
from collections import Counter

import pytest

from messaging.domain.channels import Channel
from rme.celery import QUEUES
from rme.core.environment import secret_files
from tests.deploy import helm
from tests.deploy.helm import CHART, DIGEST, VALUES, of_kind, refusal, template

pytestmark = pytest.mark.skipif(not (helm.HELM and helm.SCHEMAS), reason=helm.MISSING)

MANAGED = {
    "HOST",
    "METRICS_DIR",
    "METRICS_PORT",
    "PORT",
    "SECRETS_DIR",
    "STATIC_ROOT",
    "WORKER_CONCURRENCY",
}
"""What the image and the chart decide."""
EVERYTHING = {
    "settings": {"TLS_PROXY": "forwarded"},
    "ingress": {"enabled": True, "hosts": ["rme.example.org"], "tlsSecret": "rme-tls"},
    "httpRoute": {
        "enabled": True,
        "parentRefs": [{"name": "public"}],
        "hostnames": ["rme.example.org"],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True},
    "dashboards": {"enabled": True},
    "worker": {"autoscaling": {"source": "external"}},
    "database": {"maxConnections": 400},
    "migrations": {"postDeploy": {"enabled": True}},
}
WITHOUT_SCHEMA = {"HTTPRoute", "PodMonitor", "PrometheusRule", "ScaledObject"}
KEDA = {**EVERYTHING, "worker": {"autoscaling": {"source": "keda"}}}


def pods(manifests):
    """Return the templates of all pods by the names of what starts them."""
    found = of_kind(manifests, "Deployment", "Job")
    return {name.split()[1]: each["spec"]["template"] for name, each in found.items()}


def containers(manifests):
    return [each for pod in pods(manifests).values() for each in pod["spec"]["containers"]]


@pytest.mark.parametrize("values", [{}, EVERYTHING, KEDA], ids=["least", "all", "keda"])
def test_helm_and_kubernetes_accept_the_chart(values):
    done = helm.run("lint", helm.merged(VALUES, values), "--strict")
    assert done.returncode == 0, done.stdout + done.stderr
    for version in ("v1.29.0", "v1.37.0"):
        faults = [(each["kind"], helm.faults(version, each)) for each in template(**values)]
        unknown = {kind for kind, found in faults if found is None}
        assert unknown <= WITHOUT_SCHEMA
        assert [fault for _, found in faults for fault in found or []] == []


def test_the_schemas_find_a_fault():
    (broken,) = of_kind(template(), "Service").values()
    broken = helm.merged(broken, {"spec": {"portz": []}})
    assert "portz" in str(helm.faults("v1.37.0", broken))


def test_chart_renders_the_expected_kinds():
    assert Counter(each["kind"] for each in template(**KEDA)) == {
        "Deployment": 8,
        "PodDisruptionBudget": 8,
        "Job": 2,
        "NetworkPolicy": 3,
        "ScaledObject": 4,
        "HorizontalPodAutoscaler": 1,
        "Service": 1,
        "Ingress": 1,
        "HTTPRoute": 1,
        "PodMonitor": 1,
        "PrometheusRule": 1,
        "ConfigMap": 2,
    }
    assert all(each["metadata"]["namespace"] == "messages" for each in template(**KEDA))


def test_every_pod_has_the_least_rights():
    every_pod = pods(template(**EVERYTHING))
    assert every_pod
    for name, pod in every_pod.items():
        spec = pod["spec"]
        assert spec["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "fsGroup": 10001,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        }, name
        rights = (spec["automountServiceAccountToken"], spec["enableServiceLinks"])
        assert (*rights, "hostNetwork" in spec) == (False, False, False)
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }, name
        written = {
            each["mountPath"] for each in container["volumeMounts"] if "readOnly" not in each
        }
        assert written == {"/var/lib/rme", "/tmp"}
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}
        assert container["resources"]["limits"].keys() == {"memory"}


def test_every_image_is_a_digest():
    images = {each["image"] for each in containers(template(**EVERYTHING))}
    assert images == {f"registry.example/rme@{DIGEST}"}
    refused = refusal(image={"digest": "latest"})
    assert "'/image/digest': 'latest' does not match pattern '^sha256:[0-9a-f]{64}$'" in refused


def test_secrets_are_files_and_in_no_value():
    for pod in pods(template(**EVERYTHING)).values():
        (container,) = pod["spec"]["containers"]
        env = {each["name"]: each["value"] for each in container["env"]}
        assert env["SECRETS_DIR"] == "/run/secrets/rme"
        assert not {name.removesuffix("_FILE") for name in env} & {*secret_files.SECRETS}
        (volume,) = [each for each in pod["spec"]["volumes"] if each["name"] == "secrets"]
        assert volume["secret"] == {"secretName": "rme-secrets", "defaultMode": 0o440}
    for name in ("SECRET_KEY", "DATABASE_URL"):
        refused = refusal(settings={name: "x"})
        assert f"'/settings': additional properties '{name}' not allowed" in refused
    refused = refusal(extraEnv=[{"name": "SMTP_URL_FILE", "value": "/x"}])
    assert "extraEnv must not have SMTP_URL_FILE: it is a secret" in refused


def test_the_chart_knows_all_secrets():
    text = (CHART / "templates" / "_environment.tpl").read_text()
    listed = re.search(r'"rme.secretNames" -}}\n(.+)\n', text)
    assert listed
    assert sorted(listed[1].split()) == sorted(secret_files.SECRETS)


def test_every_queue_has_a_worker_with_a_probe():
    found = []
    for container in containers(template()):
        if "rme.workers" in container["command"]:
            queues = container["command"][-1]
            found.append(queues)
            command = ["python", "-m", "rme.probe", "worker", queues]
            probes = [
                container[probe]["exec"]["command"] for probe in ("livenessProbe", "startupProbe")
            ]
            assert probes == [command, [*command, "--worked"]]
    assert sorted(found) == sorted(QUEUES)
    assert "No entry of `workers` has the queue push" in refusal(workers={"push": None})
    both = {"queues": "push,sms", "concurrency": 1, "replicas": 1}
    rendered = of_kind(template(workers={"push": None, "sms": both}), "Deployment")
    assert len(rendered) == 7


def test_readiness_tolerates_a_database_outage_and_liveness_only_a_short_hang():
    """The database is one for all pods: all would leave the Service, and callers get no answer."""
    (web,) = pods(template())["msg-rme-web"]["spec"]["containers"]

    def seconds(probe):
        return web[probe]["periodSeconds"] * web[probe]["failureThreshold"]

    assert (seconds("readinessProbe"), seconds("livenessProbe")) == (600, 30)


def test_a_rolling_upgrade_has_as_many_new_pods_as_old_ones_before_it_ends_one():
    """So `helm --wait` ends no sooner than the last new pod is ready, and an old one was told."""
    strategies = [
        deployment["spec"]["strategy"]
        for deployment in of_kind(template(**KEDA), "Deployment").values()
    ]
    assert strategies
    rolling = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    assert strategies == [rolling] * len(strategies)


def test_workers_scale_by_the_age_of_ready_messages():
    targets = {}
    for each in of_kind(template(**EVERYTHING), "HorizontalPodAutoscaler").values():
        (metric,) = each["spec"]["metrics"]
        if metric["type"] == "External":
            source = metric["external"]["metric"]
            targets[each["spec"]["scaleTargetRef"]["name"]] = (
                source["name"],
                source.get("selector", {}).get("matchLabels", {}).get("channel"),
            )
    queries = {
        each["spec"]["scaleTargetRef"]["name"]: each["spec"]["triggers"][0]["metadata"]["query"]
        for each in of_kind(template(**KEDA), "ScaledObject").values()
    }
    ready, lag = "rme_deliveries_ready_oldest_seconds", "rme_webhook_lag_seconds"
    expected = {f"msg-rme-worker-{each.lower()}": (ready, str(each)) for each in Channel}
    assert targets == {**expected, "msg-rme-worker-webhooks": (lag, None)}
    assert queries == {
        name: f'max({metric}{{namespace="messages"'
        + (f',channel="{channel}"}})' if channel else "})")
        for name, (metric, channel) in targets.items()
    }
    for file, metric in (("metrics.py", ready), ("lags.py", lag)):
        assert metric in (helm.ROOT / "messaging" / "reports" / file).read_text()
    replicas = {
        name: each["spec"].get("replicas")
        for name, each in of_kind(template(**KEDA), "Deployment").items()
    }
    scaled = {f"Deployment {each}" for each in [*targets, "msg-rme-web"]}
    assert {name for name, each in replicas.items() if each is None} == scaled


def test_pods_are_spread_over_zones_and_evicted_one_by_one():
    manifests = template()
    budgets = {
        str(each["spec"]["selector"]["matchLabels"])
        for each in of_kind(manifests, "PodDisruptionBudget").values()
        if each["spec"]["maxUnavailable"] == 1
    }
    assert budgets
    for name, deployment in of_kind(manifests, "Deployment").items():
        labels = deployment["spec"]["selector"]["matchLabels"]
        pod = deployment["spec"]["template"]
        assert labels.items() <= pod["metadata"]["labels"].items()
        assert str(labels) in budgets, name
        spread = pod["spec"]["topologySpreadConstraints"]
        assert [(each["topologyKey"], each["whenUnsatisfiable"]) for each in spread] == [
            ("topology.kubernetes.io/zone", "ScheduleAnyway"),
            ("kubernetes.io/hostname", "ScheduleAnyway"),
        ]
        # One more in a zone at most, and counted apart for each release: else old pods decide.
        assert {each["maxSkew"] for each in spread} == {1}
        assert {*(str(each["matchLabelKeys"]) for each in spread)} == {"['pod-template-hash']"}
        assert all(each["labelSelector"]["matchLabels"] == labels for each in spread)
        assert deployment["spec"].get("replicas", 3) >= 2
    strict = of_kind(template(zones={"whenUnsatisfiable": "DoNotSchedule"}), "Deployment")
    for deployment in strict.values():
        zone, node = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"]
        assert zone["whenUnsatisfiable"] == "DoNotSchedule"
        assert node["whenUnsatisfiable"] == "ScheduleAnyway"


def test_migrations_run_before_the_upgrade_and_post_deploy_ones_after():
    jobs = {
        each["metadata"]["annotations"]["helm.sh/hook"]: each["spec"]["template"]["spec"][
            "containers"
        ][0]["command"]
        for each in of_kind(template(**EVERYTHING), "Job").values()
    }
    migrate = ["python", "manage.py", "migrate", "--noinput"]
    assert jobs == {
        "pre-install,pre-upgrade": [*migrate, "--pre-deploy"],
        "post-install,post-upgrade": ["sh", "-c", f"sleep 120 && exec {' '.join(migrate)}"],
    }


def test_services_and_policies_select_the_web_pods():
    manifests = template(**EVERYTHING)
    labels = pods(manifests)["msg-rme-web"]["metadata"]["labels"]
    selectors = [
        *(each["spec"]["selector"] for each in of_kind(manifests, "Service").values()),
        *(
            each["spec"]["podSelector"]["matchLabels"]
            for name, each in of_kind(manifests, "NetworkPolicy").items()
            if not name.endswith("-workers")
        ),
    ]
    assert len(selectors) == 3
    assert all(each.items() <= labels.items() for each in selectors)
    (service,) = of_kind(manifests, "Service").values()
    text = str([*of_kind(manifests, "Ingress", "HTTPRoute").values()])
    assert text.count(f"'name': '{service['metadata']['name']}'") == 4


def test_routes_point_to_the_router_if_enabled():
    cells = {"CELL": "eu", "CELLS": ["eu=http://eu.internal", "us=http://us.internal"]}
    router = {"enabled": True}
    manifests = template(**helm.merged(EVERYTHING, {"settings": cells, "router": router}))
    assert [helm.faults("v1.37.0", each) or [] for each in manifests] == [[]] * len(manifests)
    pod = pods(manifests)["msg-rme-router"]
    (container,) = pod["spec"]["containers"]
    assert container["command"] == ["python", "-m", "rme.router"]
    env = {each["name"]: each["value"] for each in container["env"]}
    assert (env["CELLS"], env["CELL_SECRET_FILE"]) == (
        "eu=http://eu.internal,us=http://us.internal",
        "/run/secrets/rme/CELL_SECRET",
    )
    assert env["METRICS_TOKEN_FILE"] == "/run/secrets/rme/METRICS_TOKEN"
    # The keys of the cell's data are not the router's matter.
    (secrets,) = [each["secret"] for each in pod["spec"]["volumes"] if each["name"] == "secrets"]
    assert [each["path"] for each in secrets["items"]] == ["CELL_SECRET", "METRICS_TOKEN"]
    services = of_kind(manifests, "Service")
    selector = services["Service msg-rme-router"]["spec"]["selector"]
    assert selector.items() <= pod["metadata"]["labels"].items()
    routes = str([*of_kind(manifests, "Ingress", "HTTPRoute").values()])
    backends = set(re.findall(r"'name': '(msg-rme-\w+)', 'port'", routes))
    assert backends == {"msg-rme-router"}
    policies = of_kind(manifests, "NetworkPolicy")
    (rule,) = policies["NetworkPolicy msg-rme-web"]["spec"]["ingress"]
    callers = [each["podSelector"]["matchLabels"] for each in rule["from"] if "podSelector" in each]
    assert callers == [selector]  # whatever `ingressFrom` names
    assert "settings.CELLS must list the cells" in refusal(router=router)


def test_worker_grace_period_covers_work_in_flight():
    def graces(**values):
        found = pods(template(**values))
        return {
            pod["spec"]["terminationGracePeriodSeconds"]
            for name, pod in found.items()
            if "worker" in name
        }

    assert graces() == {120}
    assert graces(settings={"LEASE_SECONDS": 200}) == {190}
    assert graces(worker={"terminationGracePeriodSeconds": 45}) == {45}
    refused = refusal(worker={"terminationGracePeriodSeconds": 20})
    assert (
        "terminationGracePeriodSeconds is 20: a worker waits for half of LEASE_SECONDS" in refused
    )


def test_services_have_valid_names_for_any_release_name():
    done = helm.run("template", VALUES, release="my.release")
    assert "kind: Service\nmetadata:\n  name: my-release-rme-web\n" in done.stdout
    done = helm.run("template", VALUES, release="2.rme")
    assert "The release's name, 2.rme, must begin with a letter." in done.stderr
