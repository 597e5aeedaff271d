"""Who runs the deployment."""

import pytest
from django.test import Client

from tests.admin.scene import person


@pytest.fixture
def root(db: None) -> Client:
    """Give a superuser's browser."""
    return person("root", is_superuser=True)
