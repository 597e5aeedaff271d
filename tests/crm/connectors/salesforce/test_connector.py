"""Salesforce, by what every platform must do, over a stub that reads SOQL and SOSL."""

import pytest

from tests.crm import remote
from tests.crm.conformance import Conformance
from tests.fakes.salesforce import SalesforceServer


class TestSalesforce(Conformance):
    @pytest.fixture
    def platform(self, server: SalesforceServer) -> remote.SalesforceRows:
        return remote.SalesforceRows(server, remote.salesforce(server))
