"""What a platform connector must be able to do."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]
"""A record of any kind: its fields by name, flat, as JSON has them. `type` says what it is."""


@dataclass(frozen=True, slots=True)
class ContactRecord:
    """A person, as far as sending needs to know. Missing values are empty strings.

    `email` is as it was typed; `mobile` is E.164; `language` like `en_GB`; `zone` an IANA name.
    """

    id: str
    first_name: str = ""
    last_name: str = ""
    email: str = ""
    mobile: str = ""
    language: str = ""
    zone: str = ""

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip()


class Connector(ABC):
    """One organization's platform."""

    def __init__(self, organization_id: str) -> None:
        self.organization_id = organization_id

    @abstractmethod
    def get_contacts(self, contact_ids: Sequence[str]) -> dict[str, ContactRecord]:
        """Find contacts by id. What does not exist is not in the answer.

        Set-based: one query or a few calls for any number of ids.
        """

    @abstractmethod
    def get_records(self, record_ids: Sequence[str]) -> dict[str, Record]:
        """Find records of any kind by id. What does not exist is not in the answer.

        Set-based, as above.
        """
