"""A program of an organization, with the key pair that signs its assertions; and Redis away."""

import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from django.test import Client

from rme.core import absence
from rme.core.redis.connection import redis_client
from rme.tenants.models import Application, ApplicationKey
from rme.tenants.oauth import applications
from tests import factories
from tests.clocks import StandingClock
from tests.rest import FORM

GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_pem(key: Any) -> str:
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def private_pem(key: Any) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


@dataclass
class Program:
    application: Application
    secret: str
    audience: str

    @property
    def client_id(self) -> str:
        return self.application.client_id

    def claims(self, **changes: Any) -> dict[str, Any]:
        claims = {
            "iss": self.client_id,
            "sub": self.application.user.username,
            "aud": self.audience,
            "exp": int(time.time()) + 300,
        }
        return {name: value for name, value in {**claims, **changes}.items() if value is not None}

    def assertion(
        self, key: Any = KEY, algorithm: str = "RS256", headers: Any = None, **changes: Any
    ) -> str:
        return jwt.encode(self.claims(**changes), key, algorithm=algorithm, headers=headers)

    def exchange(self, assertion: str, **fields: str) -> Any:
        form = {"grant_type": GRANT, "assertion": assertion, **fields}
        return Client().post("/services/oauth2/token", urlencode(form), FORM)


@pytest.fixture
def program(db, settings) -> Program:
    org = factories.organization()
    user = factories.integration_user()
    application, secret = applications.create_application(org, "tests", user)
    ApplicationKey.objects.create(application=application, name="key", material=public_pem(KEY))
    return Program(application, secret, settings.BASE_URL)


@pytest.fixture
def redis_away(settings, monkeypatch):
    """Let Redis be away for the test."""
    StandingClock(monkeypatch, absence)
    address, settings.REDIS_URL = settings.REDIS_URL, "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    yield
    settings.REDIS_URL = address
    redis_client.cache_clear()
