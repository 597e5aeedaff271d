"""What is asked of a Salesforce that fails."""

from typing import Any

from rme.crm.connectors.base import Deadline
from rme.crm.connectors.records import NewAccount
from rme.crm.connectors.salesforce.connector import SalesforceConnector


def find(connector: SalesforceConnector, seconds: float = 4.0) -> Any:
    return connector.find_contacts_by_email(
        "a@b.example", limit=1, deadline=Deadline.after(seconds)
    )


def make(connector: SalesforceConnector, seconds: float = 4.0) -> str:
    return connector.create(NewAccount("Acme"), deadline=Deadline.after(seconds))
