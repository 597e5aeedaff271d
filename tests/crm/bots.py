"""A bot of an organization that keeps its records on a platform, and the rows that are there."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from rme.crm.connectors.embedded.connector import EmbeddedConnector
from rme.crm.models import Platform
from rme.tenants.models import Organization
from tests import factories
from tests.bot.conftest import Bot, bot_of
from tests.crm import remote
from tests.crm.own_tables import OwnTables
from tests.crm.remote import OdooRows, SalesforceRows
from tests.fakes.odoo import OdooServer
from tests.fakes.salesforce import SalesforceServer

RAW = {"odoo": remote.ODOO_MAPPING, "salesforce": remote.SALESFORCE_MAPPING}


@pytest.fixture
def keeper(db: None, redis: Any) -> Organization:
    """Return the organization whose records they are."""
    return factories.organization()


@pytest.fixture
def on_odoo() -> Iterator[OdooRows]:
    with OdooServer() as odoo:
        yield OdooRows(odoo, remote.odoo(odoo))


@pytest.fixture
def on_salesforce() -> Iterator[SalesforceRows]:
    with SalesforceServer() as salesforce:
        yield SalesforceRows(salesforce, remote.salesforce(salesforce))


@pytest.fixture(params=["odoo", "salesforce"])
def rows(request: pytest.FixtureRequest) -> Any:
    """Return the rows of each remote platform."""
    return request.getfixturevalue(f"on_{request.param}")


@pytest.fixture(params=["embedded", "odoo", "salesforce"])
def any_rows(request: pytest.FixtureRequest, keeper: Organization) -> Any:
    """Return the rows of each platform."""
    if request.param == "embedded":
        return OwnTables(keeper, EmbeddedConnector(keeper.pk))
    return request.getfixturevalue(f"on_{request.param}")


def connect(org: Organization, rows: Any) -> Bot:
    """Let an organization keep its records on a remote platform; return a bot of it."""
    platform = rows.connector.platform
    Platform.objects.create(
        organization=org,
        kind=platform.kind,
        credentials=orjson.dumps(platform.settings).decode(),
        mapping=RAW[platform.kind],
    )
    return bot_of(org)


@pytest.fixture
def bot(keeper: Organization, rows: Any) -> Bot:
    """Return a bot on each remote platform."""
    return connect(keeper, rows)


@pytest.fixture
def any_bot(keeper: Organization, any_rows: Any) -> Bot:
    """Return a bot on each platform."""
    return bot_of(keeper) if isinstance(any_rows, OwnTables) else connect(keeper, any_rows)
