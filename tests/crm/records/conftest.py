"""Imports of records need an organization without templates."""

import pytest

from tests import factories


@pytest.fixture
def org(db):
    return factories.organization()
