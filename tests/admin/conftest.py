"""The admin of a superuser."""

import pytest
from django.test import Client

from tests.admin.scene import person


@pytest.fixture
def root(db: None) -> Client:
    """Return the client of a superuser."""
    return person("root", is_superuser=True)
