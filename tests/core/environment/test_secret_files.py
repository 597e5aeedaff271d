"""Secrets from files: one place for each, and nothing of their content in a refusal."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from rme.core.environment import secret_files
from tests.deploy import variables

VALUES = {
    "DATABASE_URL": "postgres://rme:hidden@db/rme",
    "REDIS_URL": "redis://redis/0",
    "SECRET_KEY": "hidden",
    "FIELD_KEYS": "first,second",
}


@pytest.fixture
def folder(tmp_path):
    for name, value in VALUES.items():
        (tmp_path / name).write_text(f"{value}\n")
    return tmp_path


def test_secrets_are_read_from_a_folder(folder):
    (folder / "FIELD_KEYS").write_text("first\nsecond\n")
    (folder / "LOG_LEVEL").write_text("DEBUG")  # no secret: the environment alone has it
    (folder / "..data").mkdir()  # as Kubernetes mounts a Secret
    env = {"SECRETS_DIR": str(folder), "PORT": "1"}
    assert secret_files.read(env) == {**env, **VALUES}


def test_each_secret_may_have_its_own_file(tmp_path):
    env = {}
    for name in secret_files.SECRETS:
        (tmp_path / name.lower()).write_text(f" {name} \n")
        env[f"{name}_FILE"] = str(tmp_path / name.lower())
    found = secret_files.read(env)
    assert {name: found[name] for name in secret_files.SECRETS} == {
        name: name for name in secret_files.SECRETS
    }


@pytest.mark.parametrize(
    ("env", "files", "sentence"),
    [
        (
            {"SECRET_KEY": "hidden"},
            {},
            "A secret is set twice: SECRET_KEY and SECRETS_DIR/SECRET_KEY.",
        ),
        (
            {"SMTP_URL": "smtp://u:hidden@mail", "SMTP_URL_FILE": "/nowhere"},
            {},
            "A secret is set twice: SMTP_URL_FILE and SMTP_URL.",
        ),
        (
            {"METRICS_TOKEN_FILE": "/nowhere"},
            {},
            "METRICS_TOKEN_FILE cannot be read: No such file or directory.",
        ),
        (
            {},
            {"METRICS_TOKEN": b"\xff"},
            "SECRETS_DIR/METRICS_TOKEN cannot be read: it is not text.",
        ),
        (
            {},
            {"SECRET_KEY_FALLBACKS": b"\n"},
            "SECRETS_DIR/SECRET_KEY_FALLBACKS is empty: remove the file, or write the secret.",
        ),
        ({}, {"SECRET_KEY": b"hidden\nhidden"}, "SECRETS_DIR/SECRET_KEY has more than one line."),
        (
            {},
            {"FIELD_KEYS": None, "REDIS_URL": None},
            "SECRETS_DIR has no file FIELD_KEYS and no file REDIS_URL.",
        ),
    ],
)
def test_ambiguous_secrets_are_rejected_at_start(folder, env, files, sentence):
    for name, content in files.items():
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)
    with pytest.raises(ImproperlyConfigured) as raised:
        secret_files.read({"SECRETS_DIR": str(folder), **env})
    assert str(raised.value) == sentence


def test_every_secret_variable_may_come_from_a_file():
    """A new secret of the settings is not forgotten here."""
    parts = {"HEADERS", "KEY", "KEYS", "SECRET", "TOKEN", "PASSWORD", "URL"}
    sounding = {name for name in variables.read_by_the_service() if parts & {*name.split("_")}}
    harmless = {"ARCHIVE_S3_KEY_ID", "ARCHIVE_URL", "BASE_URL", "OIDC_URL"}
    harmless |= {"TOKEN_FAILURES_PER_MINUTE", "TOKEN_SECONDS"}
    assert sounding - harmless == {*secret_files.SECRETS}
