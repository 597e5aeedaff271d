"""The platform that the connector calls."""

from collections.abc import Iterator

import pytest

from tests.fakes.odoo import OdooServer


@pytest.fixture
def server() -> Iterator[OdooServer]:
    with OdooServer() as running:
        yield running
