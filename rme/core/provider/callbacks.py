"""What a provider reports after it took a message, and the call that brings it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from rme.core.addresses import Digits
from rme.core.outcomes import OptOut


@dataclass(frozen=True, slots=True, repr=False)
class CallbackRequest:
    """A provider's HTTP call to us, as it arrived. Header names are lower case.

    `url` is the account's callback URL as the provider knows it, and `query` what followed it.
    """

    url: str
    method: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    received_at: datetime


@dataclass(frozen=True, slots=True)
class DeliveryReceipt:
    """A provider's report on an attempt. `type` is an event's type; `bounced` is a dead address.

    Providers return the id of the attempt that they were sent. It is in the database before the
    message leaves, so a receipt cannot come too early, and it is known even if the provider's
    answer was lost. A provider that can only name its own ids (`names_its_own_ids`) has no
    `attempt_id`; `provider_id` is then the id from its answer.
    """

    attempt_id: UUID | None
    type: str
    reason: str | None = None
    soft: bool = False
    """Of a failure: the address was unreachable for now. Several in a row suppress it."""
    machine: bool = False
    """Of an open or a click: a scanner or a proxy made it."""
    provider_id: str = ""
    opt_out: OptOut | None = None
    """Set for a failure if the provider didn't send, because the recipient had opted out there."""
    former_provider_id: str = ""
    """The id as the previous release stored it, if it differs."""


@dataclass(frozen=True, slots=True)
class UnknownCode:
    """A code that the provider's tables lack. The call is kept, and the code is counted."""

    code: str


@dataclass(frozen=True, slots=True)
class SmsPart:
    """The place of an SMS in a long text. `number` is from 1; all parts share `reference`."""

    reference: int
    total: int
    number: int


@dataclass(frozen=True, slots=True)
class InboundSms:
    """An SMS that a phone sent to us. `sender` is their number as the provider wrote it, `to` is
    ours.
    """

    sender: str
    to: str
    text: str
    answered: bool = False
    """The provider has already answered a keyword itself."""
    part: SmsPart | None = None
    """The place in a long text, if the provider did not join its parts."""
    id: str = ""
    """The provider's own id. Empty: a later SMS may arrive as an equal call, byte for byte."""
    taken_as: str = ""
    """STOP, START or HELP, if the provider took the text for one, whatever its words."""
    digits: Digits = Digits.UNSAID
    """How to read digits of `sender` without `+`."""


CallbackContent = Sequence[DeliveryReceipt | InboundSms | UnknownCode]
"""What a callback reports; empty if it has no meaning for us."""


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message that the provider took, by the attempt's id and by the provider's own."""

    attempt_id: UUID
    provider_id: str
