"""Settings that every remote platform has."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, field_validator

from rme.core.credentials import DESTINATION, CaPem
from rme.transport import origin_of


class RemoteSettings(BaseModel):
    """The platform's address, and the certificate authorities to trust for it."""

    model_config = ConfigDict(extra="forbid")

    address: Annotated[str, DESTINATION]
    ca_pem: CaPem = ""

    @field_validator("address")
    @classmethod
    def _is_address(cls, given: str) -> str:
        found = origin_of(given)
        if found is None or not found.scheme.startswith("http"):
            raise ValueError("an address like https://acme.example")
        if "/" in given.split("//", 1)[1].rstrip("/") or {"?", "#"} & set(given):
            raise ValueError("an address without a path")
        return given.rstrip("/")
