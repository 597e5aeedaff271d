"""Odoo, by what every platform must do, over a stub that answers as Odoo 19 was seen to."""

from collections.abc import Iterator

import pytest

from tests.crm import remote
from tests.crm.conformance import Conformance
from tests.fakes.odoo import OdooServer


@pytest.fixture
def server() -> Iterator[OdooServer]:
    with OdooServer() as running:
        yield running


class TestOdoo(Conformance):
    @pytest.fixture
    def platform(self, server: OdooServer) -> remote.OdooRows:
        return remote.OdooRows(server, remote.odoo(server))
