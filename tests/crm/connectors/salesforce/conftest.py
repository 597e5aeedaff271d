"""The platform that the connector calls."""

from collections.abc import Iterator

import pytest

from tests.fakes.salesforce import SalesforceServer


@pytest.fixture
def server() -> Iterator[SalesforceServer]:
    with SalesforceServer() as running:
        yield running
