"""Fixtures for tests of platforms."""

from tests.crm.bots import any_bot, any_rows, bot, keeper, on_odoo, on_salesforce, rows

__all__ = ["any_bot", "any_rows", "bot", "keeper", "on_odoo", "on_salesforce", "rows"]
