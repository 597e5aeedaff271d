"""Images of others can be pinned by digest, without a change of these files."""

import re

from tests.service import ROOT

PINNED = re.compile(r"\S+@sha256:[0-9a-f]{64}|\$\{[A-Z_]+_IMAGE(:-[^}]+)?\}")
OWN = "rme:"


def test_every_image_of_others_is_a_digest_or_a_variable():
    dockerfile = (ROOT / "Dockerfile").read_text()
    images = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    compose = (ROOT / "compose.yaml").read_text()
    images += re.findall(r"^ +image: (\S+)", compose, re.MULTILINE)
    others = [image for image in images if not image.startswith(OWN)]
    assert len(others) == 4
    assert [image for image in others if not PINNED.fullmatch(image)] == []


def test_the_variables_are_documented():
    variables = set(re.findall(r"\$\{([A-Z_]+_IMAGE)", (ROOT / "compose.yaml").read_text()))
    assert variables == {"PYTHON_IMAGE", "POSTGRES_IMAGE", "VALKEY_IMAGE"}
    deploy = (ROOT / "docs" / "deploy.md").read_text()
    assert {name for name in variables if f"{name}=" in deploy} == variables
