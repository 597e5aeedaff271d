"""How the contract of providers is tried on each sender: accounts and contents for a port."""

import time

from push.providers import access_tokens, fcm, salesforce
from rme.core.provider import Push
from tests.fakes import apns as fake_apns
from tests.fakes import fcm as fake_fcm
from tests.push.providers import test_salesforce
from tests.push.providers.attempts import provider
from tests.push.subscriptions import Browser


def apns(port: int, ca: str, timeout: float) -> dict[str, object]:
    return fake_apns.settings(port, ca, timeout)


def fcm_logged_in(port: int, ca: str, timeout: float) -> dict[str, object]:
    settings = fake_fcm.settings(port, ca, timeout)
    made = provider("fcm", settings)
    assert isinstance(made, fcm.Fcm)
    access_tokens.store(
        made.credential_name, fcm.TOKEN_LIFE, access_tokens.AccessToken("access", time.time())
    )
    return settings


def platform_logged_in(port: int, ca: str, timeout: float) -> dict[str, object]:
    settings = test_salesforce.settings(port, ca, timeout)
    made = provider("salesforce", settings)
    assert isinstance(made, salesforce.SalesforcePush)
    token = access_tokens.AccessToken("access", time.time(), f"https://localhost:{port}")
    access_tokens.store(made.credential_name, salesforce.TOKEN_LIFE, token)
    return settings


def webpush(port: int, ca: str, timeout: float) -> dict[str, object]:
    return {"subject": "mailto:ops@example.com", "ca_pem": ca, "timeout": timeout}


def android(port: int) -> Push:
    return Push("fcm:token", "ANDROID", "Hello", "Hi")


def user(port: int) -> Push:
    return Push("0055g00000AbCdE", "PLATFORM", "Hello", "Hi")


def browser(port: int) -> Push:
    return Push(Browser(f"https://localhost:{port}/x").text, "WEB", "Hello", "Hi")
