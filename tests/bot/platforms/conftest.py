"""Bots on each platform: the fixtures of `tests.crm`, whose `bot` calls by a platform."""

from tests.crm.bots import any_bot, any_rows, bot, keeper, on_odoo, on_salesforce, rows
from tests.crm.conftest import odoo, salesforce

__all__ = [
    "any_bot",
    "any_rows",
    "bot",
    "keeper",
    "odoo",
    "on_odoo",
    "on_salesforce",
    "rows",
    "salesforce",
]
