"""Fixtures for tests of platforms."""

from collections.abc import Iterator

import pytest

from tests.crm.bots import any_bot, any_rows, bot, keeper, on_odoo, on_salesforce, rows
from tests.fakes.odoo import OdooServer
from tests.fakes.salesforce import SalesforceServer

__all__ = ["any_bot", "any_rows", "bot", "keeper", "on_odoo", "on_salesforce", "rows"]


@pytest.fixture
def odoo() -> Iterator[OdooServer]:
    with OdooServer() as running:
        yield running


@pytest.fixture
def salesforce() -> Iterator[SalesforceServer]:
    with SalesforceServer() as running:
        yield running
