"""The rules and dashboards name metrics that exist, and each alert has its section."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from rme.cells.router import metrics as router
from rme.core.telemetry import meters
from tests.deploy.dashboards import MONITORING, dashboards, expressions, panels
from tests.scrape import families

ROOT = Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
NAME = re.compile(r"\brme(?::\w+)+|\brme_\w+")
needs_promtool = pytest.mark.skipif(
    not shutil.which("promtool"), reason="promtool is not installed (make prometheus)"
)


def rules(name: str) -> list[dict[str, str]]:
    groups = yaml.safe_load((MONITORING / name).read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.mark.django_db
def test_each_named_metric_exists(client):
    names = {"rme:" + rule["record"].partition(":")[2] for rule in rules("recording.yaml")}
    for family in families():
        ends = ("_total",) if family.type == "counter" else ("",)
        names |= {family.name + end for end in ends}
    for meter in meters.ALL:
        names.add(meter.name)
        if isinstance(meter, meters.Histogram):
            names |= {meter.name + end for end in ("_bucket", "_count", "_sum")}
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)", router.text().decode(), re.MULTILINE):
        names |= {name, f"{name}_bucket"} if kind == "histogram" else {name}
    texts = [rule["expr"] for name in ("recording.yaml", "alerts.yaml") for rule in rules(name)]
    texts += expressions()
    for page in sorted((ROOT / "docs").glob("*.md")):
        texts += re.findall(r"`(rme[_:]\w*[a-z])\b", page.read_text())
    used = {name for text in texts for name in NAME.findall(text)}
    assert len(used) > 30
    assert used - names == {"rme_cell"}  # a cookie


def test_each_alert_has_a_severity_and_its_own_section():
    alerts = rules("alerts.yaml")
    assert {each["labels"]["severity"] for each in alerts} == {"page", "ticket"}
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbooks.md").read_text(), re.MULTILINE)
    assert sections == [each["alert"] for each in alerts]


def test_each_dashboard_has_the_fields_grafana_requires():
    """The fields that Grafana's published schema (`@grafana/schema`) requires."""
    assert dashboards()
    for name, dashboard in dashboards().items():
        places = [each["gridPos"] for each in dashboard["panels"]]
        cells = [
            (place["x"] + column, place["y"] + row)
            for place in places
            for column in range(place["w"])
            for row in range(place["h"])
        ]
        assert (len(cells), max(column for column, _ in cells)) == (len({*cells}), 23), name
        ids = [each["id"] for each in dashboard["panels"]]
        assert len(ids) == len({*ids})
        assert dashboard["uid"] == f"rme-{name}"
        variables = {each["name"]: each for each in dashboard["templating"]["list"]}
        assert variables.keys() == {"datasource", "namespace"}
        assert variables["namespace"]["allValue"] == ".*"  # also what has no namespace
        for panel in panels(dashboard):
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert panel["fieldConfig"].keys() == {"defaults", "overrides"}
            for target in panel["targets"]:  # of the chosen cells alone
                _, *chosen = re.split(r"\brme[:_]", target["expr"])
                assert chosen, panel["title"]
                assert all(re.match(r'\w+(:\w+)*{namespace=~"\$namespace"[,}]', e) for e in chosen)
            refs = [each["refId"] for each in panel["targets"]]
            assert len(refs) == len({*refs})
            if panel["type"] == "timeseries":
                legend = {"calcs": [], "displayMode": "list", "placement": "bottom"}
                assert panel["options"]["legend"] == {**legend, "showLegend": True}


@needs_promtool
@pytest.mark.parametrize(
    "command",
    [
        ["check", "config", "--syntax-only", "prometheus.yaml"],
        ["check", "rules", str(MONITORING / "recording.yaml"), str(MONITORING / "alerts.yaml")],
        ["test", "rules", "tests.yaml"],
    ],
    ids=["config", "rules", "tests"],
)
def test_promtool_accepts_the_rules(command):
    done = subprocess.run(
        ["promtool", *command], cwd=PROMETHEUS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_prometheus_understands_each_expression_of_a_dashboard(tmp_path):
    found = expressions()
    assert len(found) > 40
    groups = [{"record": f"dashboard:{place}", "expr": expr} for place, expr in enumerate(found)]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": groups}]}))
    done = subprocess.run(
        ["promtool", "check", "rules", "--lint=none", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
