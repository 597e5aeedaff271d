"""Keys are rotated by the documented steps while processes of the step before still run."""

import os
import subprocess
import sys
from dataclasses import dataclass
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from messaging import links
from messaging.consent.privacy import requests
from messaging.content import tracked_links
from messaging.models import ProviderAccount
from rme.cells import environment as cell_settings
from rme.cells import signatures
from rme.core.environment import secret_files
from rme.key_files import Keys
from rme.tenants.audit import Actor
from tests.service import ROOT

pytestmark = pytest.mark.django_db
CREDENTIALS = '{"a": "secret"}'
ADDRESS = "ada@people.example"


@dataclass
class Deployment:
    """The keys' files, and the settings of the processes that were started at each step."""

    keys: Keys
    settings: object

    def restart(self):
        """Return the settings of a process that starts now."""
        found = secret_files.read({"SECRETS_DIR": str(self.keys.folder)})
        fallbacks = found.get("SECRET_KEY_FALLBACKS", "")
        return {
            "SECRET_KEY": found["SECRET_KEY"],
            "SECRET_KEY_FALLBACKS": [each for each in fallbacks.split(",") if each],
            "FIELD_KEYS": found["FIELD_KEYS"].split(","),
        }

    def use(self, process):
        for name, value in process.items():
            setattr(self.settings, name, value)


@pytest.fixture
def deployment(tmp_path, settings):
    keys = Keys(tmp_path / "secrets")
    hosts = ("postgres:5432", "redis:6379")
    assert keys.create(hosts) == [
        *("SECRET_KEY", "FIELD_KEYS", "VAPID_PRIVATE_KEY", "METRICS_TOKEN"),
        *("POSTGRES_PASSWORD", "DATABASE_URL", "REDIS_PASSWORD", "REDIS_URL"),
    ]
    assert keys.create(hosts) == []
    return Deployment(keys, settings)


def steps(deployment, name):
    """Yield the processes of two steps that run side by side while one is rolled out, each way."""
    before = deployment.restart()
    for step in (deployment.keys.add, deployment.keys.promote):
        step(name)
        after = deployment.restart()
        yield before, after
        yield after, before
        before = after


def test_secret_key_is_rotated_without_a_lost_link_session_or_request(deployment, org, admin_user):
    link = links.PreferenceLink(org.pk, "003", "EMAIL", "MARKETING")
    deployment.use(deployment.restart())
    old = link.token, tracked_links.open_url(uuid4()).rpartition("/")[2]
    browser = Client()
    browser.force_login(admin_user)
    new = requests.NewRequest("EXPORT", address=ADDRESS, note="by email")
    row = requests.open_request(org.pk, new, Actor(name="olga"))

    for writes, reads in steps(deployment, "SECRET_KEY"):
        deployment.use(writes)
        token = link.token
        deployment.use(reads)
        assert links.read(token) == links.read(old[0]) == link
        tracked_links.read(tracked_links.OPEN, old[1])
        assert browser.get("/admin/").status_code == 200
        wanted = requests.PrivacyRequestFilter(address=ADDRESS)
        assert requests.page(org.pk, wanted, limit=5) == ([row], None)

    deployment.keys.forget("SECRET_KEY")
    deployment.use(deployment.restart())
    assert links.read(link.token) == link
    with pytest.raises(links.BadLink):
        links.read(old[0])


def test_field_keys_are_rotated_without_an_unreadable_secret(deployment, org):
    for number, (writes, reads) in enumerate(steps(deployment, "FIELD_KEYS")):
        deployment.use(writes)
        ProviderAccount.objects.create(
            organization=org,
            name=f"a{number}",
            kind="smtp",
            channel="EMAIL",
            credentials=CREDENTIALS,
        )
        deployment.use(reads)
        found = [each.credentials for each in ProviderAccount.objects.filter(organization=org)]
        assert found == [CREDENTIALS] * (number + 1)
    deployment.use(deployment.restart())
    with pytest.raises(CommandError, match="3 values need an older key"):
        call_command("reencrypt_secrets", "--check")
    call_command("reencrypt_secrets")
    call_command("reencrypt_secrets", "--check")
    deployment.keys.forget("FIELD_KEYS")
    deployment.use(deployment.restart())
    assert len(deployment.settings.FIELD_KEYS) == 1
    found = [each.credentials for each in ProviderAccount.objects.filter(organization=org)]
    assert found == [CREDENTIALS] * 4


def test_the_secret_of_cells_is_rotated_without_a_refused_call(deployment):
    keys = deployment.keys
    assert keys.create(cells=True) == ["CELL_SECRET"]

    def secret():
        env = {"CELL": "eu", "CELLS": "eu=http://eu", "SECRETS_DIR": str(keys.folder)}
        return cell_settings.read(secret_files.read(env)).secret

    signed = signatures.sign(before := secret(), "POST /", b"")
    for step in (keys.add, keys.promote):
        step("CELL_SECRET")
        for writes, reads in ((before, secret()), (secret(), before)):
            assert signatures.is_signed(
                reads, "POST /", b"", signatures.sign(writes, "POST /", b"")
            )
        before = secret()
    keys.forget("CELL_SECRET")
    assert not signatures.is_signed(secret(), "POST /", b"", signed)


def test_redis_url_without_a_password_gets_one_and_any_other_stays(tmp_path):
    keys, hosts = Keys(tmp_path), ("postgres:5432", "redis:6379")
    (tmp_path / "REDIS_URL").write_text("redis://redis:6379/0\n")
    assert {"REDIS_PASSWORD", "REDIS_URL"} <= {*keys.create(hosts)}
    password = (tmp_path / "REDIS_PASSWORD").read_text().strip()
    assert (tmp_path / "REDIS_URL").read_text() == f"redis://:{password}@redis:6379/0\n"
    (tmp_path / "REDIS_URL").write_text("redis://elsewhere:6379/0\n")
    assert keys.create(hosts) == []


def test_derived_keys_become_files(tmp_path, deployment, org):
    """Those of a deployment that set nothing but SECRET_KEY and a password until now."""
    folder = tmp_path / "older"
    folder.mkdir()
    (folder / "SECRET_KEY").write_text("of long ago\n")
    (folder / "POSTGRES_PASSWORD").write_text("p/w\n")
    show = "from django.conf import settings as s; print(*s.FIELD_KEYS, s.VAPID_PRIVATE_KEY)"
    done = subprocess.run(
        [sys.executable, "-c", show],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "rme.settings", "SECRET_KEY": "of long ago"},
        capture_output=True,
        text=True,
        check=True,
    )
    made = Keys(folder).create(("postgres:5432", "redis:6379"))
    assert made == [
        *("FIELD_KEYS", "VAPID_PRIVATE_KEY", "METRICS_TOKEN"),
        *("DATABASE_URL", "REDIS_PASSWORD", "REDIS_URL"),
    ]
    read = [(folder / name).read_text().strip() for name in ("FIELD_KEYS", "VAPID_PRIVATE_KEY")]
    assert read == done.stdout.split()
    assert (folder / "DATABASE_URL").read_text() == "postgres://rme:p%2Fw@postgres:5432/rme\n"
    keys = Keys(folder)
    keys.add("SECRET_KEY")
    keys.promote("SECRET_KEY")
    found = secret_files.read({"SECRETS_DIR": str(folder)})
    assert found["SECRET_KEY_FALLBACKS"] == "of long ago"
    (folder / "SECRET_KEY").unlink()
    (folder / "SECRET_KEY").write_text("a,b")
    with pytest.raises(ValueError, match="SECRET_KEY has a comma"):
        keys.promote("SECRET_KEY")


def test_key_files_are_readable_by_their_owner_only(deployment):
    folder = deployment.keys.folder
    deployment.keys.add("SECRET_KEY")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o440}
    password = (folder / "POSTGRES_PASSWORD").read_text().strip()
    assert (folder / "DATABASE_URL").read_text() == f"postgres://rme:{password}@postgres:5432/rme\n"


@pytest.mark.parametrize(
    ("arguments", "code", "output"),
    [
        (["add", "FOLDER", "SECRET_KEY"], 0, "SECRET_KEY: 2"),
        (["promote", "FOLDER", "FIELD_KEYS"], 2, "has one key alone: `add` makes another one."),
        (["add", "/nowhere", "FIELD_KEYS"], 2, "there is no file /nowhere/FIELD_KEYS; `create` ma"),
        (["create", "FOLDER", "--cells"], 0, "Made CELL_SECRET"),
        (["add", "FOLDER", "VAPID_PRIVATE_KEY"], 2, "invalid choice: 'VAPID_PRIVATE_KEY'"),
    ],
)
def test_command_reports_its_result_and_shows_no_key(deployment, arguments, code, output):
    folder = deployment.keys.folder
    secrets = [path.read_text().strip() for path in folder.iterdir()]
    command = [sys.executable, "-m", "rme.key_files"]
    command += [str(folder) if each == "FOLDER" else each for each in arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, output in done.stdout + done.stderr) == (code, True)
    assert not any(secret in done.stdout + done.stderr for secret in secrets)
