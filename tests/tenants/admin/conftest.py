"""The admin of a superuser, and organizations with a row of every model."""

from collections.abc import Iterator

import pytest
from django.db import transaction
from django.test import Client
from pytest_django import DjangoDbBlocker

from rme.tenants.models import Organization
from tests import factories
from tests.tenants.admin.scene import fill, person


@pytest.fixture
def root(db: None) -> Client:
    """Return the client of a superuser."""
    return person("root", is_superuser=True)


@pytest.fixture(scope="class")
def filled(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Organization]:
    """Fill an organization once for the tests of a class: each works in a savepoint of its own."""
    with django_db_blocker.unblock(), transaction.atomic():
        row = factories.organization()
        factories.welcome(row)
        fill(row)
        yield row
        transaction.set_rollback(True)


@pytest.fixture(scope="class")
def elsewhere(filled: Organization) -> Iterator[Organization]:
    """Fill a second organization, with a template whose fields are not an email's."""
    with transaction.atomic():
        row = factories.organization("elsewhere")
        factories.template(row, channel="SMS", name="theirs")
        fill(row)
        yield row
        transaction.set_rollback(True)
