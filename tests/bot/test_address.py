"""Where the service is found: below another path, and on a host of its own."""

import json
import os
import subprocess
import sys
from urllib.parse import quote, urlencode

import pytest
from django.conf import settings
from django.db import connection

from tests import factories
from tests.bot.conftest import bot_of
from tests.service import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

CALLS = """
import json, sys
import django
django.setup()
from django.conf import settings
from django.test import Client
from rme.demo import organization

host, query, form, key, *paths = sys.argv[1:]
client = Client(HTTP_HOST=host, HTTP_X_API_KEY=key)
sort = "application/x-www-form-urlencoded"
found = {path: [client.get(f"{path}/api.php?{query}").status_code,
                client.post(f"{path}/api_create.php", form, sort).status_code] for path in paths}
found["demo"] = organization._addresses("http://x.example")["bot_base_url"]
print(json.dumps(found))
"""


def calls(bot, base: str, host: str, *paths: str):
    """Start the service with a base path, and call it at some paths as a bot does."""
    database = connection.settings_dict
    address = f"{quote(database['HOST'], safe='')}:{database['PORT']}/{database['NAME']}"
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "rme.settings",
        "DATABASE_URL": f"postgres://{database['USER']}@{address}",
        "REDIS_URL": settings.REDIS_URL,
        "BOT_BASE_PATH": base,
        "ALLOWED_HOSTS": "rme.example,bot.example",
    }
    query = urlencode({"action": "Confirm_Contact", "org": bot.org.pk, "email": "a@b.example"})
    form = urlencode({"action": "Create_Account", "org": bot.org.pk, "accountName": "Acme"})
    done = subprocess.run(
        [sys.executable, "-c", CALLS, host, query, form, bot.key, *paths],
        cwd=ROOT, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.promise("bot-calls-1", "bot-calls-2")
@pytest.mark.parametrize(
    ("base", "host", "path"),
    [("/crm/bots/", "rme.example", "/crm/bots"), ("/", "bot.example", "")],
    ids=["path", "host"],
)
def test_the_service_is_where_the_deployment_says(redis, base, host, path):
    bot = bot_of(factories.organization())
    assert calls(bot, base, host, path, "/bot") == {
        path: [200, 200],
        "/bot": [404, 404],
        "demo": f"http://x.example{path}",
    }
