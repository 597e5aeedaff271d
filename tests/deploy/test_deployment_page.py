"""What docs/deployment.md tells an operator to write is taken."""

import re

import pytest
import yaml

from rme.core.environment import secret_files
from tests.deploy import helm, variables
from tests.deploy.helm import CHART, DIGEST
from tests.service import ROOT

PAGE = (ROOT / "docs" / "deployment.md").read_text()


def blocks(language):
    """Return the page's blocks of code in a language, without their indentation."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", PAGE, re.MULTILINE | re.DOTALL)
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, text in found]


@pytest.mark.skipif(not (helm.HELM and helm.SCHEMAS), reason=helm.MISSING)
def test_the_values_of_the_page_are_an_installation():
    text = blocks("yaml")[0]
    values = yaml.safe_load(text.replace("sha256:…", DIGEST))
    done = helm.run("template", values)
    assert (done.returncode, done.stderr) == (0, "")
    kinds = [each["kind"] for each in yaml.safe_load_all(done.stdout) if each]
    assert (kinds.count("Deployment"), kinds.count("Ingress")) == (8, 1)


def test_the_settings_of_the_page_are_settings():
    (text,) = [each for each in blocks("sh") if each.startswith("BASE_URL=")]
    names = {line.partition("=")[0] for line in text.splitlines()}
    assert names <= variables.read_by_the_service() - {*secret_files.SECRETS}


def test_the_page_has_the_numbers_of_the_chart():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    sizes = {
        "web, ": values["web"]["resources"],
        "one worker": values["worker"]["resources"],
        "worker-sweep": values["worker"]["resources"],
        "beat": values["beat"]["resources"],
    }
    for part, resources in sizes.items():
        (row,) = re.findall(rf"^\| {part}.*MiB.*$", PAGE, re.MULTILINE)
        cells = [each.strip() for each in row.split("|")]
        limit = re.sub(r"(\d)([MG])i", r"\1 \2iB", resources["limits"]["memory"])
        request = re.sub(r"(\d)([MG])i", r"\1 \2iB", resources["requests"]["memory"])
        assert (cells[4], cells[5].partition(":")[0]) == (request, limit)
    web = values["web"]["autoscaling"]
    assert f"| web | {web['min']} to {web['max']} by CPU |" in PAGE


def test_helm_waits_for_longer_than_a_migration_may_take():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    minutes = re.findall(r"helm upgrade\b.*--timeout (\d+)m", PAGE)
    assert len(minutes) == len(re.findall(r"helm upgrade .*--wait --", PAGE)) == 3
    assert min(map(int, minutes)) * 60 > values["migrations"]["activeDeadlineSeconds"]
