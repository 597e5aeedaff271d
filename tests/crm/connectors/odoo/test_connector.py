"""Odoo, by what every platform must do, over a stub that answers as Odoo 19 was seen to."""

import pytest

from tests.crm import remote
from tests.crm.conformance import Conformance
from tests.fakes.odoo import OdooServer


class TestOdoo(Conformance):
    @pytest.fixture
    def platform(self, server: OdooServer) -> remote.OdooRows:
        return remote.OdooRows(server, remote.odoo(server))
