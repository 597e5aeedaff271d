"""A server that can't be reached: the sentence names the variable, the server and the remedy."""

import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from redis import Redis
from redis.exceptions import ResponseError

from rme.core.environment import deploy_checks, diagnosis
from rme.core.redis.connection import redis_client
from tests.ports import free_port
from tests.service import ROOT

pytestmark = pytest.mark.django_db


def database(**changes):
    return {**settings.DATABASES["default"], **changes}


def test_server_that_answers_has_no_problem():
    assert diagnosis.problem_of_settings() is None
    assert diagnosis.redis_problem("REDIS_URL", redis_client()) is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"NAME": "nowhere"}, "no such database. Create it: createdb nowhere."),
        ({"USER": "nobody2"}, "no such user. Create it: createuser nobody2."),
        ({"HOST": "/nowhere"}, "nothing listens on that socket. Set DATABASE_URL, or start"),
        ({"HOST": "a.invalid"}, "no such host. Correct its name."),
    ],
)
def test_each_mistake_in_the_address_has_its_remedy(changes, sentence):
    problem = diagnosis.database_problem("DATABASE_URL", database(**changes))
    assert problem.startswith("DATABASE_URL: PostgreSQL at ")
    assert sentence in problem


def test_port_on_which_nothing_listens_is_named():
    port = free_port()
    address = database(HOST="127.0.0.1", PORT=port, PASSWORD="hidden")
    assert diagnosis.database_problem("DATABASE_URL", address) == (
        f"DATABASE_URL: PostgreSQL at 127.0.0.1:{port}: it refuses the connection. Start it, or "
        "correct the port."
    )
    client = Redis(host="127.0.0.1", port=port, password="hidden")
    assert diagnosis.redis_problem("REDIS_URL", client) == (
        f"REDIS_URL: Redis at 127.0.0.1:{port}: it refuses the connection. Start it, or correct "
        "the port."
    )


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        ('FATAL:  password authentication failed for user "rme"', "Correct user or password"),
        ("invalid username-password pair or user is disabled.", "Correct user or password"),
        ("fe_sendauth: no password supplied", "Write user:password@host"),
        ("Authentication required.", "Write user:password@host"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.9"', "See its pg_hba.conf"),
        ("connection timeout expired", "no answer within"),
        ("SSL error: certificate verify failed", "See sslmode and sslrootcert"),
        ("FATAL:  sorry, too many clients already", "Raise its limit"),
        ("something else.\nand more", "something else"),
    ],
)
def test_message_of_a_server_is_explained(error, remedy):
    client = Answering(error)
    assert remedy in diagnosis.redis_problem("REDIS_URL", client)


class Answering(Redis):
    """A client whose server answers with an error."""

    def __init__(self, error):
        super().__init__(host="127.0.0.1", port=1)
        self.error = error

    def ping(self, **_):
        raise ResponseError(self.error)


def test_doctor_finds_nothing_wrong_with_addresses_and_servers(capsys, settings):
    settings.BASE_URL, settings.ALLOWED_HOSTS = "https://rme.example.org", ["rme.example.org"]
    with pytest.raises(CommandError):  # no worker runs here
        call_command("doctor", no_color=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "ok     BASE_URL is one of ALLOWED_HOSTS",
        "ok     BASE_URL uses TLS, or is this machine",
        "ok     PostgreSQL answers",
        "ok     Redis answers",
        "ok     All migrations are applied",
    ]
    assert any(line.startswith("wrong  workers: ") for line in lines)


def test_doctor_names_each_mistake(capsys, settings):
    settings.BASE_URL, settings.ALLOWED_HOSTS = "http://rme.example.org", ["localhost"]
    with pytest.raises(CommandError):
        call_command("doctor", no_color=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "wrong  ALLOWED_HOSTS lacks rme.example.org, the host of BASE_URL: add it."
    assert lines[1].startswith("wrong  BASE_URL=http://rme.example.org sends passwords")


def test_deploy_check_names_a_server_that_does_not_answer(monkeypatch):
    assert deploy_checks.unreachable_servers() == []
    monkeypatch.setitem(settings.DATABASES["default"], "HOST", "/nowhere")
    (error,) = deploy_checks.unreachable_servers()
    assert error.msg.startswith("DATABASE_URL: PostgreSQL at /nowhere: ")


@pytest.mark.parametrize(
    ("command", "env", "line"),
    [
        (["manage.py", "migrate"], {"PORT": "abc"}, "PORT=abc is not a whole number"),
        (["manage.py", "migrate"], {"DATABASE_URL": "nonsense"}, "DATABASE_URL isn't the address"),
        (
            ["manage.py", "showmigrations"],
            {"DATABASE_URL": "postgres://rme:hidden@a.invalid/rme"},
            "DATABASE_URL: PostgreSQL at a.invalid: no such host. Correct its name.",
        ),
        (["-m", "rme.workers"], {"BASE_URL": "rme.org"}, "BASE_URL=rme.org is not a URL"),
        (["-m", "rme.run", "web"], {}, "SECRET_KEY isn't set: generate one with"),
        (["-m", "rme.run", "web"], {"SECRET_KEY_FILE": "/nowhere"}, "SECRET_KEY_FILE cannot be"),
    ],
)
def test_program_that_cannot_start_says_so_in_one_line(command, env, line, tmp_path):
    ended = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "RME_VAR": str(tmp_path), **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"rme: {line}")
    assert ended.stderr.count("\n") == 1
    assert "hidden" not in ended.stderr
