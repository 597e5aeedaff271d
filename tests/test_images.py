"""Images of others are named by digest, and can be replaced without a change of these files."""

import re

from tests.service import ROOT

DIGEST = re.compile(r"[a-z/]+:[\w.-]+@sha256:[0-9a-f]{64}")
OWN = "rme:"


def test_every_external_image_is_pinned_by_digest():
    dockerfile = (ROOT / "Dockerfile").read_text()
    compose = (ROOT / "compose.yaml").read_text()
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)", dockerfile, re.MULTILINE))
    images = [
        arguments[name] for name in re.findall(r"^FROM \$\{(\w+)\}", dockerfile, re.MULTILINE)
    ]
    images += [
        re.sub(r"^\$\{\w+:-(.+)\}$", r"\1", image)
        for image in re.findall(r"^ +image: (\S+)", compose, re.MULTILINE)
    ]
    others = [image for image in images if not image.startswith(OWN)]
    assert len(others) == 4
    assert len(re.findall(r"^FROM ", dockerfile, re.MULTILINE)) == 2
    assert [image for image in others if not DIGEST.fullmatch(image)] == []


def test_the_variables_are_documented():
    compose = (ROOT / "compose.yaml").read_text()
    variables = set(re.findall(r"\$\{(\w+_IMAGE):-", compose))
    variables.update(re.findall(r"^ +- (\w+_IMAGE)\b", compose, re.MULTILINE))
    assert variables == {"PYTHON_IMAGE", "POSTGRES_IMAGE", "VALKEY_IMAGE"}
    page = (ROOT / "docs" / "production.md").read_text()
    assert {name for name in variables if f"{name}=" in page} == variables
