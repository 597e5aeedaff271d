"""The settings of an account that sends by SMPP."""

import re
from typing import Annotated, Literal

from django.utils.translation import gettext as _
from pydantic import Field, SecretStr, StringConstraints, model_validator

from rme.core.provider import ProviderSettings
from rme.core.provider.credentials import DESTINATION, CaPem, Host, Port
from rme.transport.smpp.text_encoding import Alphabet, LongTextMethod

Ton = Annotated[int, Field(ge=0, le=255)]
Ascii = r"^[\x21-\x7e]*$"


class SmppSettings(ProviderSettings):
    """The bind, the form of messages, and how receipts are read."""

    host: Host = Field(description="Without TLS, it must be in OUTBOUND_OPEN_HOSTS.")
    port: Port = 2775
    tls: Annotated[bool, DESTINATION] = False
    ca_pem: CaPem = ""
    system_id: Annotated[str, StringConstraints(pattern=Ascii, min_length=1, max_length=15)]
    password: SecretStr = SecretStr("")
    system_type: Annotated[str, StringConstraints(pattern=Ascii, max_length=12)] = ""
    service_type: Annotated[str, StringConstraints(pattern=Ascii, max_length=5)] = ""
    address_range: Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]*$", max_length=40)] = ""
    sender: Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]*$", max_length=20)] = ""
    source_ton: Ton | None = Field(
        default=None, description="Leave empty for 5 (name), 1 (number) or 3 (short number)."
    )
    source_npi: Ton | None = Field(default=None, description="Leave empty for 1 (number) or 0.")
    window: Annotated[int, Field(ge=1, le=500)] = Field(
        default=10, description="Messages that may be in flight at once, in each process."
    )
    enquire_seconds: Annotated[float, Field(ge=1, le=600)] = 30.0
    timeout: Annotated[float, Field(gt=0, le=20)] = 20.0
    alphabet: Alphabet = Field(
        default=Alphabet.GSM, description="Text with other characters goes as UCS-2."
    )
    long_messages: LongTextMethod = LongTextMethod.UDH
    receipts: bool = True
    message_ids: Literal["SAME", "HEX_IN_RESPONSES", "HEX_IN_RECEIPTS"] = Field(
        default="SAME",
        description="Some SMSCs write ids in hexadecimal in one place and in decimal in another.",
    )
    dead_errors: list[Annotated[str, Field(max_length=10)]] = Field(
        default=[], description="Values of `err` that mean a dead number, like 001."
    )
    stop_errors: list[Annotated[str, Field(max_length=10)]] = Field(
        default=[], description="Values of `err` that mean: the recipient replied STOP."
    )

    @model_validator(mode="after")
    def _password_fits(self) -> "SmppSettings":
        if not re.fullmatch(r"[\x21-\x7e]{0,64}", self.password.get_secret_value()):
            raise ValueError(_("the password is longer than 64 characters, or not of ASCII"))
        return self
