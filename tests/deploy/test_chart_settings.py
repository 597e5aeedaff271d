"""Every variable that the service reads can be set by the chart, and arrives as it was meant."""

import json
import os
import subprocess
import sys

import pytest

from rme.core.environment import secret_files
from tests.deploy import helm, variables
from tests.deploy.helm import CHART, template
from tests.deploy.test_chart import MANAGED, containers
from tests.service import ROOT

SETTABLE = json.loads((CHART / "values.schema.json").read_text())["properties"]["settings"]
SAMPLES = {
    "count": 1_000_000,
    "countOrNone": 0,
    "flag": True,
    "list": ["1.5", 20],
    "period": "day",
    "seconds": 2.5,
    "text": "text",
    "url": "https://sample.example",
}
"""A value of each type of the schema."""
OWN = {
    "ARCHIVE_AFTER_DAYS": 40,
    "ARCHIVE_URL": "",  # which wants packages that may be missing
    "CELERY_QUEUE_TYPE": "classic",  # the other needs RabbitMQ
    "CELL": "eu",
    "CELLS": ["eu=http://eu.internal", "us=http://us.internal"],
    "CIRCUIT_FAILURES": 0.25,
    "DATABASE_POOLER": "transaction",
    "LOG_LEVEL": "WARNING",
    "TLS_PROXY": 1,
    "TRACING": False,  # as the archive
}
SHOW = """
import json
from django.conf import settings
names = json.loads(input())
print(json.dumps({name: getattr(settings, name, None) for name in names}, default=str))
"""


def test_every_variable_can_be_set_or_is_a_secret():
    settable = {*SETTABLE["properties"]}
    assert settable.isdisjoint({*secret_files.SECRETS} | MANAGED)
    expected = variables.read_by_the_service()
    extra = json.loads((CHART / "values.schema.json").read_text())["properties"]["extraEnv"]
    assert {*extra["items"]["properties"]["name"]["not"]["enum"]} == settable
    assert settable | {*secret_files.SECRETS} | MANAGED == expected | {"SECRETS_DIR"}


@pytest.mark.skipif(not (helm.HELM and helm.SCHEMAS), reason=helm.MISSING)
def test_settings_equal_the_chart_values(tmp_path):
    values = {
        name: OWN.get(name, SAMPLES.get(kind.get("$ref", "").rpartition("/")[2]))
        for name, kind in SETTABLE["properties"].items()
    }
    assert None not in values.values()
    secrets = {
        "DATABASE_DIRECT_URL": "postgres://rme:p@db/rme",
        "DATABASE_URL": "postgres://rme:p@pooler/rme",
        "REDIS_URL": "redis://redis/0",
        "SECRET_KEY": "key",
        "FIELD_KEYS": "first\nsecond",
        "CELL_SECRET": "c" * 32,
    }
    for name, secret in secrets.items():
        (tmp_path / name).write_text(secret)
    env = {each["name"]: each["value"] for each in containers(template(settings=values))[0]["env"]}
    env |= {"SECRETS_DIR": str(tmp_path), "RME_VAR": str(tmp_path), "STATIC_ROOT": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SHOW],
        input=json.dumps(sorted({*values, *secrets})),
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "rme.settings", **env},
        capture_output=True,
        text=True,
        check=True,
    )
    read = json.loads(done.stdout)
    same = {name for name, value in read.items() if value == values.get(name)}
    named_otherwise = {
        *("ARCHIVE_S3_ENDPOINT", "ARCHIVE_S3_KEY_ID", "ARCHIVE_S3_REGION", "ARCHIVE_URL"),
        *(
            "CELERY_QUEUE_TYPE",
            "DATABASE_DIRECT_URL",
            "DATABASE_POOL",
            "DATABASE_POOLER",
            "DATABASE_URL",
        ),
        *("DATABASE_PREPARED_STATEMENTS", "LOG_JSON", "LOG_LEVEL", "MAIL_FROM"),
        *("OIDC_CLIENT_ID", "WEB_WORKERS"),
    }
    other = {name: read[name] for name in {*read} - same - named_otherwise}
    assert other == {
        "ALLOWED_HOSTS": ["1.5", "20"],
        "BOT_BASE_PATH": "/text",
        "CELLS": {"eu": "http://eu.internal", "us": "http://us.internal"},
        "CELL_SECRET": "c" * 32,
        "FIELD_KEYS": ["first", "second"],
        "JWT_AUDIENCES": ["1.5", "20"],
        "OUTBOUND_OPEN_HOSTS": ["1.5", "20"],
        "REDIS_URL": "redis://redis/0",
        "SECRET_KEY": "key",
        "UNKNOWN_BACKOFF_SECONDS": [1.5, 20.0],
        "WEB_PUSH_HOSTS": ["1.5", "20"],
    }
