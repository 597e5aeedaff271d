"""SMS by SMPP 3.4, straight to an SMSC (SMPP v3.4 specification, issue 1.2, §5.1.3).

CODES says what a `command_status` means, in a bind and in `submit_sm_resp`. A code that is not
there is a refusal of which nobody knows the reason: Retryable, for the SMSC has not taken the
message; in a bind Misconfigured. Without an answer: Retryable up to the
last byte of a message, Unknown after it.

A link is bound once by each process, and kept. Reports come over it; they name the SMSC's own id of
the message and not ours.
"""

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field, SecretStr, StringConstraints, model_validator

from rme.core.channels import Channel
from rme.core.credentials import DESTINATION, CaPem
from rme.core.outcomes import (
    NOT_TRIED,
    Accepted,
    Fault,
    Misconfigured,
    Outcome,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.provider import (
    CallbackRequest,
    DeliveryReceipt,
    Dispatch,
    InboundSms,
    Progress,
    Provider,
    ProviderSettings,
    Sms,
    SmsPart,
    StoreReceived,
    UnknownCode,
    http,
    no_progress,
)
from rme.transport import NOT_STARTED, AddressPolicy, Failure, FailureKind, Transport, smpp
from rme.transport.smpp import text_encoding
from rme.transport.smpp.pdu import RESPONSE, CommandId, Tag, first_string
from rme.transport.smpp.pending import Answer
from rme.transport.smpp.text_encoding import Alphabet, LongTextMethod

CODES: dict[int, Outcome] = {
    0x01: Rejected("ESME_RINVMSGLEN", Fault.CONTENT),
    0x02: Rejected("ESME_RINVCMDLEN", Fault.CONTENT),
    0x03: Misconfigured("ESME_RINVCMDID"),
    0x04: Retryable("ESME_RINVBNDSTS"),
    0x05: Retryable("ESME_RALYBND"),  # a link too many
    0x06: Misconfigured("ESME_RINVPRTFLG"),
    0x07: Misconfigured("ESME_RINVREGDLVFLG"),
    0x08: Retryable("ESME_RSYSERR"),
    0x0A: Misconfigured("ESME_RINVSRCADR"),
    # Not hard: SMSCs say so too of numbers that they have no way to.
    0x0B: Rejected("ESME_RINVDSTADR"),
    0x0D: Misconfigured("ESME_RBINDFAIL"),
    0x0E: Misconfigured("ESME_RINVPASWD"),
    0x0F: Misconfigured("ESME_RINVSYSID"),
    0x14: Retryable("ESME_RMSGQFUL"),
    0x15: Misconfigured("ESME_RINVSERTYP"),
    0x43: Misconfigured("ESME_RINVESMCLASS"),
    0x45: Retryable("ESME_RSUBMITFAIL"),
    0x48: Misconfigured("ESME_RINVSRCTON"),
    0x49: Misconfigured("ESME_RINVSRCNPI"),
    0x50: Misconfigured("ESME_RINVDSTTON"),
    0x51: Misconfigured("ESME_RINVDSTNPI"),
    0x53: Misconfigured("ESME_RINVSYSTYP"),
    0x58: Retryable("ESME_RTHROTTLED"),
    0x61: Misconfigured("ESME_RINVSCHED"),
    0x62: Misconfigured("ESME_RINVEXPIRY"),
    0x64: Retryable("ESME_RX_T_APPN"),
    0x65: Rejected("ESME_RX_P_APPN"),
    0x66: Rejected("ESME_RX_R_APPN"),
    0xC0: Misconfigured("ESME_RINVOPTPARSTREAM"),
    0xC1: Misconfigured("ESME_ROPTPARNOTALLWD"),
    0xC2: Misconfigured("ESME_RINVPARLEN"),
    0xC3: Misconfigured("ESME_RMISSINGOPTPARAM"),
    0xC4: Misconfigured("ESME_RINVOPTPARAMVAL"),
    0xFE: Rejected("ESME_RDELIVERYFAILURE"),
    0xFF: Unknown("ESME_RUNKNOWNERR"),
}
STATES: dict[str, str | None] = {
    # message_state (§5.2.28), and `stat` of the text form (appendix B)
    "2": "delivered",
    "3": "failed",  # expired
    "4": "failed",  # deleted
    "5": "failed",  # undeliverable
    "6": "sent",  # accepted: SMSCs say so of what the next one took
    "8": "failed",  # rejected
    "DELIVRD": "delivered",
    "EXPIRED": "failed",
    "DELETED": "failed",
    "UNDELIV": "failed",
    "ACCEPTD": "sent",
    "REJECTD": "failed",
    **dict.fromkeys(("0", "1", "7", "9", "ENROUTE", "UNKNOWN", "SCHEDUL", "SKIPPED"), None),
}
"""None: that says nothing new."""
UNREACHED = frozenset({"3", "EXPIRED"})
"""The phone was off, or out of reach, for as long as the SMSC tried."""
_MESSAGE_TYPE = 0x3C
_FROM_A_PERSON = 0x00
_RECEIPTS = frozenset({0x04, 0x20})
"""Delivery receipts, and notifications on the way there (§5.2.12)."""
_FIELD = re.compile(r"\b(id|stat|err):\s*(\S{1,65})", re.IGNORECASE)
Ton = Annotated[int, Field(ge=0, le=255)]
Ascii = r"^[\x21-\x7e]*$"


class SmppSettings(ProviderSettings):
    """How to bind, how to write, and how to read what comes back."""

    host: Annotated[
        str,
        StringConstraints(pattern=r"^[A-Za-z0-9._:-]+$", min_length=1, max_length=253),
        DESTINATION,
    ] = Field(description="Without TLS it must stand in OUTBOUND_OPEN_HOSTS.")
    port: Annotated[int, Field(ge=1, le=65535), DESTINATION] = 2775
    tls: Annotated[bool, DESTINATION] = False
    ca_pem: CaPem = ""
    system_id: Annotated[str, StringConstraints(pattern=Ascii, min_length=1, max_length=15)]
    password: SecretStr = SecretStr("")
    system_type: Annotated[str, StringConstraints(pattern=Ascii, max_length=12)] = ""
    service_type: Annotated[str, StringConstraints(pattern=Ascii, max_length=5)] = ""
    address_range: Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]*$", max_length=40)] = ""
    sender: Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]*$", max_length=20)] = ""
    source_ton: Ton | None = Field(
        default=None, description="Empty: 5 for a name, 1 for a number, 3 for a short one."
    )
    source_npi: Ton | None = Field(default=None, description="Empty: 1 for a number, else 0.")
    window: Annotated[int, Field(ge=1, le=500)] = Field(
        default=10, description="Messages that may be under way at once, in each process."
    )
    enquire_seconds: Annotated[float, Field(ge=1, le=600)] = 30.0
    timeout: Annotated[float, Field(gt=0, le=20)] = 20.0
    alphabet: Alphabet = Field(
        default=Alphabet.GSM, description="What it does not have goes as UCS-2."
    )
    long_messages: LongTextMethod = LongTextMethod.UDH
    receipts: bool = True
    message_ids: Literal["SAME", "HEX_IN_RESPONSES", "HEX_IN_RECEIPTS"] = Field(
        default="SAME", description="Some SMSCs write ids in hexadecimal here, in decimal there."
    )
    dead_errors: list[Annotated[str, Field(max_length=10)]] = Field(
        default=[], description="`err` of receipts by which the number is dead, like 001."
    )

    @model_validator(mode="after")
    def _password_fits(self) -> "SmppSettings":
        if not re.fullmatch(r"[\x21-\x7e]{0,64}", self.password.get_secret_value()):
            raise ValueError("the password is longer than 64 characters, or not of ASCII")
        return self


class Smpp(Provider):
    """Hand SMS to an SMSC over a kept link."""

    kind: ClassVar[str] = "smpp"
    label: ClassVar[str] = "SMPP 3.4"
    channels: ClassVar[frozenset[Channel]] = frozenset({Channel.SMS})
    Settings: ClassVar[type[ProviderSettings]] = SmppSettings
    settings: SmppSettings
    listens: ClassVar[bool] = True
    names_its_own_ids: ClassVar[bool] = True

    def send(
        self,
        dispatches: Sequence[Dispatch],
        transport: Transport,
        progress: Progress = no_progress,
    ) -> list[Outcome]:
        """Send a window over the link: of the transport only its policy and patience count."""
        written = [self._write(dispatch) for dispatch in dispatches]
        bodies = [body for parts in written for body in parts]

        def judge(answers: Sequence[Answer | None]) -> list[Outcome | None]:
            each = iter(answers)
            return [self._judge_known([next(each) for _ in parts]) for parts in written]

        def report(answers: Sequence[Answer | None]) -> None:
            found = enumerate(judge(answers))
            progress([(place, outcome) for place, outcome in found if outcome])

        answers = self._line().submit(bodies, transport.policy, transport.start_timeout, report)
        return [outcome for outcome in judge(answers) if outcome]

    def listen(self, store: StoreReceived, policy: AddressPolicy) -> None:
        self._line().listen(store, policy)

    def _line(self) -> smpp.SmppClient:
        account = self.settings
        return smpp.client_for(
            smpp.Login(
                account.host,
                account.port,
                account.system_id,
                account.password.get_secret_value(),
                account.system_type,
                smpp.Address(account.address_range),
                account.tls,
                account.ca_pem,
                account.window,
                account.timeout,
                account.enquire_seconds,
            )
        )

    # --- there ----------------------------------------------------------------------------------

    def _write(self, dispatch: Dispatch) -> list[bytes]:
        """Give the bodies that a message takes; none if it cannot be written."""
        sms, account = dispatch.sms, self.settings
        reference = int(dispatch.attempt_id[-4:], 16)
        try:
            parts = text_encoding.split(
                sms.text, account.alphabet, account.long_messages, reference
            )
            # One report is enough: the last part's, which comes when all of it is there.
            return [self._message(sms, each, is_last=each is parts[-1]).encode() for each in parts]
        except ValueError:  # a text that is too long, a sender that is, or is no ASCII
            return []

    def _message(
        self, sms: Sms, part: text_encoding.TextPart, *, is_last: bool
    ) -> smpp.ShortMessage:
        return smpp.ShortMessage(
            self._source(sms.sender or self.settings.sender),
            smpp.Address(sms.to.removeprefix("+"), 1, 1),
            part.text,
            part.esm_class,
            part.coding,
            int(self.settings.receipts and is_last),
            self.settings.service_type,
            part.parameters,
            part.payload,
        )

    def _source(self, sender: str) -> smpp.Address:
        """Say what kind of sender it is: a name, a short number of a network, a number."""
        digits = sender.removeprefix("+")
        ton, npi = (1, 1) if digits.isdigit() else (5, 0)
        if sender.isdigit() and len(sender) <= 6:
            ton, npi = 3, 0
        if not sender:
            ton, npi = 0, 0
        own = self.settings
        return smpp.Address(
            digits if ton == 1 else sender,
            ton if own.source_ton is None else own.source_ton,
            npi if own.source_npi is None else own.source_npi,
        )

    # --- and back -------------------------------------------------------------------------------

    def _judge_known(self, answers: Sequence[Answer | None]) -> Outcome | None:
        """Return what became of a message; None while a part of it is awaited."""
        known = [answer for answer in answers if answer is not None]
        return self._of_parts(known) if len(known) == len(answers) else None

    def _of_parts(self, answers: Sequence[Answer]) -> Outcome:
        """Say what became of a message by what became of its parts.

        One part refused, and the whole will never be there: it may be sent again. The last part's
        id is that of the report.
        """
        if not answers:
            return Rejected("the provider cannot write this message", Fault.CONTENT)
        outcomes = [self._outcome(answer) for answer in answers]
        refused = [each for each in outcomes if not isinstance(each, Accepted | Unknown)]
        unknown = [each for each in outcomes if isinstance(each, Unknown)]
        return next(iter([*refused, *unknown]), outcomes[-1])

    def _outcome(self, answer: Answer) -> Outcome:
        if answer is NOT_STARTED:
            return NOT_TRIED
        if isinstance(answer, Failure):
            return _failed(answer)
        if answer.status:
            reason = f"refused: {answer.status:#x}"
            return CODES.get(answer.status, Retryable(reason))
        if answer.command != CommandId.SUBMIT_SM | RESPONSE:
            return Unknown("the answer makes no sense")
        return Accepted(self._same(first_string(answer.body), "HEX_IN_RESPONSES"))

    def read_callback(
        self, callback: CallbackRequest
    ) -> Sequence[DeliveryReceipt | InboundSms | UnknownCode]:
        try:
            message = smpp.ShortMessage.decode(callback.body)
        except smpp.InvalidPdu:
            return []
        kind = message.esm_class & _MESSAGE_TYPE
        text = text_encoding.decode(
            message.text, message.data_coding, self.settings.alphabet, message.esm_class
        )
        if kind == _FROM_A_PERSON:
            source = message.source
            sender = f"+{source.text}" if source.text.isdigit() and source.ton <= 1 else source.text
            place = text_encoding.part_position(message.text, message.parameters, message.esm_class)
            part = SmsPart(*place) if place else None
            to = message.destination.text
            return [InboundSms(sender, to, text.replace("\0", " "), part=part)]
        return self._report(message, text) if kind in _RECEIPTS else []

    def _report(self, message: smpp.ShortMessage, text: str) -> list[DeliveryReceipt | UnknownCode]:
        """Read a receipt: its parameters, and where they are missing, the text of appendix B."""
        said = {name.lower(): value for name, value in reversed(_FIELD.findall(text))}
        named = first_string(message.parameters.get(Tag.RECEIPTED_MESSAGE_ID, b""))
        state = message.parameters.get(Tag.MESSAGE_STATE, b"")
        code = str(state[0]) if state else said.get("stat", "").upper()[:7]
        form = "HEX_IN_RESPONSES" if named else "HEX_IN_RECEIPTS"  # as the answer had it, or not
        reference = self._same(named or said.get("id", ""), form)
        if not code or not reference:
            return []
        if code not in STATES:
            return [UnknownCode(code)]
        kind = STATES[code]
        if kind is None:
            return []
        error = said.get("err", "")
        if kind == "failed" and error in self.settings.dead_errors:
            kind = "bounced"
        reason = " ".join(each for each in (said.get("stat", ""), error) if each)
        soft = kind == "failed" and code in UNREACHED
        return [
            DeliveryReceipt(
                None, kind, http.text_of(reason, 80) or None, soft=soft, provider_id=reference
            )
        ]

    def _same(self, identifier: str, form: str) -> str:
        """Write an id so that it is the same wherever it stood."""
        identifier = http.text_of(identifier, 65).lower()
        if self.settings.message_ids == "SAME":
            return identifier
        try:
            return str(int(identifier, 16 if self.settings.message_ids == form else 10))
        except ValueError:
            return identifier


def _failed(failure: Failure) -> Outcome:
    if failure.kind is FailureKind.LOGIN:
        known = CODES.get(failure.status)
        if isinstance(known, Retryable):
            return known
        reason = f"the bind was refused: {failure.status:#x}"
        return Misconfigured(getattr(known, "reason", reason))
    return http.failure_outcome(failure)
