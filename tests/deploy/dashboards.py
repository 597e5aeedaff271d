"""The dashboards of the chart, as values."""

import json
from typing import Any

from tests.deploy.helm import CHART

MONITORING = CHART / "monitoring"
Panel = dict[str, Any]


def dashboards() -> dict[str, Panel]:
    """Return the dashboards by the names of their files."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(MONITORING.glob("*.json"))}


def panels(dashboard: Panel) -> list[Panel]:
    """Return the panels of a dashboard that show something; rows are none."""
    return [each for each in dashboard["panels"] if each["type"] != "row"]


def expressions() -> list[str]:
    """Return what the panels of all dashboards ask Prometheus for, with all cells chosen."""
    return [
        target["expr"].replace("$namespace", ".*")
        for dashboard in dashboards().values()
        for panel in panels(dashboard)
        for target in panel["targets"]
    ]
