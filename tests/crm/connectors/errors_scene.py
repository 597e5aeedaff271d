"""What is asked of a platform that fails."""

from typing import Any

from rme.crm.connectors.base import Connector, Deadline
from rme.crm.connectors.records import NewAccount


def find(connector: Connector, seconds: float = 4.0) -> Any:
    return connector.find_contacts_by_email(
        "a@b.example", limit=1, deadline=Deadline.after(seconds)
    )


def make(connector: Connector, seconds: float = 4.0) -> str:
    return connector.create(NewAccount("Acme"), deadline=Deadline.after(seconds))
