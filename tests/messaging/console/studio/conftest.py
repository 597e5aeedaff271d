"""A template with an active version, and two people who edit it."""

import pytest
from django.test import Client

from tests import factories
from tests.messaging.console.studio.scene import client_of


@pytest.fixture
def row(org):
    return factories.template(org, name="order", html="<p>{{ note }}</p>")


@pytest.fixture
def ann(org):
    return client_of(Client, org, "ann")


@pytest.fixture
def ben(org):
    return client_of(Client, org, "ben")
