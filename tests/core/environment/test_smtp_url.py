"""The demo's mail server: which one host and port its address opens, and to which account."""

import json
import os
import subprocess
import sys

import pytest

from messaging.models import ProviderAccount
from rme import demo
from rme.core.environment import smtp_url
from rme.core.environment.smtp_url import MailServer
from rme.transport import AddressPolicy
from tests.service import ROOT


@pytest.mark.parametrize(
    ("url", "server", "opened"),
    [
        (
            "smtp://u%40x:p%2Fw@mail.internal",
            MailServer("mail.internal", 587, "STARTTLS", "u@x", "p/w"),
            ["mail.internal:587"],
        ),
        ("smtps://10.0.0.5", MailServer("10.0.0.5", 465, "TLS", "", ""), ["10.0.0.5:465"]),
        ("smtp+plain://[::1]", MailServer("::1", 25, "NONE", "", ""), ["[::1]:25"]),
        (
            "smtp+plain://127.0.0.1:2525/",
            MailServer("127.0.0.1", 2525, "NONE", "", ""),
            ["127.0.0.1:2525"],
        ),
    ],
)
def test_address_opens_one_port_of_its_host(url, server, opened):
    assert smtp_url.parse(url) == server
    assert smtp_url.opened_by(url) == opened
    policy = AddressPolicy(opened)
    assert policy.opens(server.host, server.port)
    assert not any(policy.opens(server.host, port) for port in (80, 443, 6379, server.port + 1))


@pytest.mark.parametrize(
    "url",
    ["", "mail.internal", "http://mail", "smtp://", "smtp://mail:0", "smtp://mail:x", "smtp://[:1"],
)
def test_an_invalid_url_opens_no_host(url):
    assert smtp_url.opened_by(url) == []
    with pytest.raises(ValueError) as raised:
        smtp_url.parse(url)
    assert str(raised.value) == (
        "SMTP_URL must begin with smtp, smtps, smtp+plain and name a host, and a port at most."
    )


def test_settings_open_only_the_default_port():
    show = "from django.conf import settings; print(settings.OUTBOUND_OPEN_HOSTS)"
    env = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "rme.settings",
        "OUTBOUND_OPEN_HOSTS": "sms.internal",
        "SMTP_URL": "smtp://user:password@mail.internal",
    }
    shown = subprocess.run(
        [sys.executable, "-c", show], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "['sms.internal', 'mail.internal:587']\n"


@pytest.mark.django_db
def test_demo_account_uses_the_opened_port(org):
    demo.use_mail_server("smtp+plain://127.0.0.1", org.pk)
    account = ProviderAccount.objects.get(organization=org, name="smtp")
    credentials = json.loads(account.credentials)
    assert (credentials["host"], credentials["port"]) == ("127.0.0.1", 25)
