"""SMS by SMPP 3.4, straight to an SMSC (SMPP v3.4 specification, issue 1.2, §5.1.3).

CODES is the table of what a `command_status` means, in a bind and in `submit_sm_resp`. A code that
it lacks, like a vendor's own (0x400 to 0x4FF), refuses for an unknown reason: Retryable, as the
SMSC has not taken the message, without blame for the account; in a bind Misconfigured. Without an
answer: Retryable up to the last byte of a message, then Unknown.

Each process binds once and keeps the connection. Receipts come over it; they name the SMSC's own id
of the message.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from messaging.domain.channels import Channel
from messaging.providers.smpp_settings import SmppSettings
from rme.core.addresses import Digits
from rme.core.outcomes import (
    NOT_TRIED,
    Accepted,
    Fault,
    Misconfigured,
    OptOut,
    Outcome,
    Rejected,
    Retryable,
    Unknown,
)
from rme.core.provider import (
    CallbackContent,
    CallbackRequest,
    DeliveryReceipt,
    Dispatch,
    InboundSms,
    Progress,
    Provider,
    Sms,
    SmsPart,
    StoreReceived,
    UnknownCode,
    http,
    no_progress,
    refusals,
)
from rme.core.provider.base import UNWRITABLE
from rme.transport import smpp
from rme.transport.addresses import AddressPolicy
from rme.transport.messages import NOT_STARTED, Failure, FailureKind
from rme.transport.performer import Performer
from rme.transport.smpp import text_encoding
from rme.transport.smpp.pdu import RESPONSE, CommandId, Tag, first_string
from rme.transport.smpp.pending import Answer

CODES: dict[int, Outcome] = {
    0x01: Rejected("ESME_RINVMSGLEN", Fault.CONTENT),
    0x02: Rejected("ESME_RINVCMDLEN", Fault.CONTENT),
    0x03: Misconfigured("ESME_RINVCMDID"),
    0x04: Retryable("ESME_RINVBNDSTS"),
    0x05: Retryable("ESME_RALYBND"),  # too many connections
    0x06: Misconfigured("ESME_RINVPRTFLG"),
    0x07: Misconfigured("ESME_RINVREGDLVFLG"),
    0x08: Retryable("ESME_RSYSERR"),  # the SMSC itself fails
    0x0A: Misconfigured("ESME_RINVSRCADR", of_sender=True),
    # Not hard: SMSCs also answer it for numbers to which they have no route.
    0x0B: Rejected("ESME_RINVDSTADR"),
    0x0D: Misconfigured("ESME_RBINDFAIL"),
    0x0E: Misconfigured("ESME_RINVPASWD"),
    0x0F: Misconfigured("ESME_RINVSYSID"),
    0x14: Retryable("ESME_RMSGQFUL"),
    0x15: Misconfigured("ESME_RINVSERTYP"),
    0x43: Rejected("ESME_RINVESMCLASS", Fault.ROUTE),  # of long texts alone
    # For no stated reason, so perhaps this message's numbers or text
    # (https://ozeki-sms-gateway.com/p_8777-esme-rsubmitfail-smpp-error-code.html).
    0x45: Retryable("ESME_RSUBMITFAIL", blames_account=False),
    0x48: Misconfigured("ESME_RINVSRCTON", of_sender=True),
    0x49: Misconfigured("ESME_RINVSRCNPI", of_sender=True),
    # About this number: all go out as international ones (§5.2.5, §5.2.6).
    0x50: Rejected("ESME_RINVDSTTON", Fault.ROUTE),
    0x51: Rejected("ESME_RINVDSTNPI", Fault.ROUTE),
    0x53: Misconfigured("ESME_RINVSYSTYP"),
    0x58: Retryable("ESME_RTHROTTLED"),
    0x61: Misconfigured("ESME_RINVSCHED"),
    0x62: Misconfigured("ESME_RINVEXPIRY"),
    0x64: Retryable("ESME_RX_T_APPN"),
    0x65: Rejected("ESME_RX_P_APPN"),
    0x66: Rejected("ESME_RX_R_APPN"),
    # Only long texts have parameters.
    0xC0: Rejected("ESME_RINVOPTPARSTREAM", Fault.ROUTE),
    0xC1: Rejected("ESME_ROPTPARNOTALLWD", Fault.ROUTE),
    0xC2: Rejected("ESME_RINVPARLEN", Fault.ROUTE),
    0xC3: Rejected("ESME_RMISSINGOPTPARAM", Fault.ROUTE),
    0xC4: Rejected("ESME_RINVOPTPARAMVAL", Fault.ROUTE),
    0xFE: Rejected("ESME_RDELIVERYFAILURE"),
    0xFF: Unknown("ESME_RUNKNOWNERR"),
}
STATES: dict[str, str | None] = {
    # message_state (§5.2.28), and `stat` of the text form (appendix B)
    "2": "delivered",
    "3": "failed",  # expired
    "4": "failed",  # deleted
    "5": "failed",  # undeliverable
    "6": "sent",  # accepted: by the next SMSC
    "8": "failed",  # rejected
    "DELIVRD": "delivered",
    "EXPIRED": "failed",
    "DELETED": "failed",
    "UNDELIV": "failed",
    "ACCEPTD": "sent",
    "REJECTD": "failed",
    **dict.fromkeys(("0", "1", "7", "9", "ENROUTE", "UNKNOWN", "SCHEDUL", "SKIPPED"), None),
}
"""By state: the receipt's type; None for no news."""
UNREACHED = frozenset({"3", "EXPIRED"})
"""States of a phone that was off or out of reach for as long as the SMSC tried."""
DIGITS = {1: Digits.INTERNATIONAL, 2: Digits.NATIONAL}
"""How to read digits of an address, by its type of number (§5.2.5); other types are open."""
_MESSAGE_TYPE = 0x3C
_INBOUND = 0x00
_RECEIPT_TYPES = frozenset({0x04, 0x20})
"""Delivery receipts, and notifications on the way there (§5.2.12)."""
_FIELD = re.compile(r"\b(id|stat|err):\s*(\S{1,65})", re.IGNORECASE)


class Smpp(Provider):
    """Hand SMS to an SMSC over a kept connection."""

    kind = "smpp"
    label = "SMPP 3.4"
    channels = frozenset({Channel.SMS})
    Settings = SmppSettings
    settings: SmppSettings
    shows_ascii_senders_only = True  # `source_addr` is a C-octet string, which is ASCII (§3.1)
    listens = True
    names_its_own_ids = True

    def send(
        self,
        dispatches: Sequence[Dispatch],
        transport: Performer,
        progress: Progress = no_progress,
    ) -> list[Outcome]:
        """Send a window over the kept connection; of the transport, only its limits are used."""
        messages = [self._parts(dispatch) for dispatch in dispatches]
        bodies = [body for parts in messages for body in parts]

        def read(answers: Sequence[Answer | None]) -> list[Outcome | None]:
            iterator = iter(answers)
            outcomes = [self._known_outcome([next(iterator) for _ in parts]) for parts in messages]
            pairs = zip(outcomes, dispatches, strict=True)
            return [
                out and refusals.of_message(out, self.requested_sender(dispatch.sms))
                for out, dispatch in pairs
            ]

        def on_answers(answers: Sequence[Answer | None]) -> None:
            outcomes = enumerate(read(answers))
            progress([(index, outcome) for index, outcome in outcomes if outcome])

        answers = self._client().submit(
            bodies, transport.policy, transport.start_timeout, on_answers
        )
        return [outcome for outcome in read(answers) if outcome]

    def check(self, transport: Performer) -> Outcome:
        """Bind, if this process is not bound yet."""
        failure = self._client().bind(transport.policy)
        return _failed(failure) if failure else Accepted()

    def listen(self, store: StoreReceived, policy: AddressPolicy) -> None:
        self._client().listen(store, policy)

    def stop_listening(self) -> None:
        self._client().stop_listening()

    def _client(self) -> smpp.SmppClient:
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

    # --- messages ------------------------------------------------------------------------------

    def _parts(self, dispatch: Dispatch) -> list[bytes]:
        """Return the bodies of a message's parts; none if it cannot be written."""
        sms, account = dispatch.sms, self.settings
        reference = int(dispatch.attempt_id[-4:], 16)
        try:
            parts = text_encoding.split(
                sms.text, account.alphabet, account.long_messages, reference
            )
            # One receipt is enough: the last part's, which comes when all parts have arrived.
            return [self._message(sms, each, is_last=each is parts[-1]).encode() for each in parts]
        except ValueError:  # a text or a sender that is too long
            return []

    def _message(
        self, sms: Sms, part: text_encoding.TextPart, *, is_last: bool
    ) -> smpp.ShortMessage:
        return smpp.ShortMessage(
            self._source(self.requested_sender(sms) or self.settings.sender),
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
        """Return the sender's address with its type: a name, a short number, or a number."""
        digits = sender.removeprefix("+")
        ton, npi = (1, 1) if digits.isdigit() else (5, 0)
        if sender.isdigit() and len(sender) <= 6:
            ton, npi = 3, 0
        if not sender:
            ton, npi = 0, 0
        account = self.settings
        return smpp.Address(
            digits if ton == 1 else sender,
            ton if account.source_ton is None else account.source_ton,
            npi if account.source_npi is None else account.source_npi,
        )

    # --- answers and receipts ------------------------------------------------------------------

    def _known_outcome(self, answers: Sequence[Answer | None]) -> Outcome | None:
        """Return the outcome of a message; None while a part is awaited."""
        received = [answer for answer in answers if answer is not None]
        return self._of_parts(received) if len(received) == len(answers) else None

    def _of_parts(self, answers: Sequence[Answer]) -> Outcome:
        """Return the outcome of a message by the answers to its parts.

        One refused part means that the message will never be complete: it may be sent again. The
        receipt has the last part's id.
        """
        if not answers:
            return UNWRITABLE
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
            return CODES.get(answer.status, Retryable(reason, blames_account=False))
        if answer.command != CommandId.SUBMIT_SM | RESPONSE:
            return Unknown("the answer makes no sense")
        return Accepted(self._normalized(first_string(answer.body), "HEX_IN_RESPONSES"))

    def read_callback(self, callback: CallbackRequest) -> CallbackContent:
        try:
            message = smpp.ShortMessage.decode(callback.body)
        except smpp.InvalidPdu:
            return []
        kind = message.esm_class & _MESSAGE_TYPE
        text = text_encoding.decode(
            message.text, message.data_coding, self.settings.alphabet, message.esm_class
        )
        if kind == _INBOUND:
            place = text_encoding.part_position(message.text, message.parameters, message.esm_class)
            source, text = message.source, text.replace("\0", " ")
            part = SmsPart(*place) if place else None
            digits = DIGITS.get(source.ton, Digits.UNSAID)
            return [
                InboundSms(source.text, message.destination.text, text, part=part, digits=digits)
            ]
        return self._receipt(message, text) if kind in _RECEIPT_TYPES else []

    def _receipt(self, message: smpp.ShortMessage, text: str) -> CallbackContent:
        """Return a receipt by its parameters; where they are missing, by the text (appendix B)."""
        fields = {name.lower(): value for name, value in reversed(_FIELD.findall(text))}
        receipted_id = first_string(message.parameters.get(Tag.RECEIPTED_MESSAGE_ID, b""))
        state = message.parameters.get(Tag.MESSAGE_STATE, b"")
        code = str(state[0]) if state else fields.get("stat", "").upper()[:7]
        # A parameter has the form of responses.
        form = "HEX_IN_RESPONSES" if receipted_id else "HEX_IN_RECEIPTS"
        written_id = receipted_id or fields.get("id", "")
        reference = self._normalized(written_id, form)
        if not code or not reference:
            return []
        if code not in STATES:
            return [UnknownCode(code)]
        kind = STATES[code]
        if kind is None:
            return []
        error = fields.get("err", "")
        if kind == "failed" and error in self.settings.dead_errors:
            kind = "bounced"
        reason = " ".join(each for each in (fields.get("stat", ""), error) if each)
        soft = kind == "failed" and code in UNREACHED
        stopped = kind == "failed" and error in self.settings.stop_errors
        former = http.text_of(written_id, 65).lower() if self.settings.message_ids == "SAME" else ""
        return [
            DeliveryReceipt(
                None,
                kind,
                http.text_of(reason, 80) or None,
                soft,
                provider_id=reference,
                opt_out=OptOut.STOP if stopped else None,
                former_provider_id=former if former != reference else "",
            )
        ]

    def _normalized(self, identifier: str, form: str) -> str:
        """Return an id in one form, whichever field it came from.

        A receipt's text has ten digits (appendix B), so zeros may lead there that the answer lacks.
        """
        identifier = http.text_of(identifier, 65).strip().lower()
        if self.settings.message_ids == "SAME":
            return identifier.lstrip("0") or identifier[:1]
        try:
            return str(int(identifier, 16 if self.settings.message_ids == form else 10))
        except ValueError:
            return identifier


def _failed(failure: Failure) -> Outcome:
    if failure.kind is FailureKind.LOGIN:
        outcome = CODES.get(failure.status)
        if isinstance(outcome, Retryable):
            return replace(outcome, blames_account=True)  # a bind concerns all messages
        reason = f"the bind was refused: {failure.status:#x}"
        return Misconfigured(getattr(outcome, "reason", reason))
    return http.failure_outcome(failure)
