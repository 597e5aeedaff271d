"""The class of a refused mail: by an SMTP reply, a service's report or a bounce mail."""

import re
from typing import NamedTuple

from rme.core.provider.bounce_classes import (
    ENHANCED,
    RECIPIENT_SIDE,
    SENDING_SIDE,
    WORDS,
    BounceClass,
    Rows,
    word_row,
)
from rme.core.provider.refusals import compile_row
from rme.transport.messages import Stage

READ_LIMIT = 2000
"""How many characters of a text are read."""

B = BounceClass
_ENHANCED = [(compile_row(row), bounce_class) for row, bounce_class in ENHANCED]
_WORDS = [(compile_row(word_row(row)), bounce_class) for row, bounce_class in WORDS]

_CODE = re.compile(r"(?<![\w.])([45]\d\d)(?![\w.])")
_STATUS = re.compile(r"(?<![\w.])([45]\.\d{1,3}\.\d{1,3})(?![\w]|\.\d)")
_LOGIN = (530, 534, 535, 538)
"""Replies that require or refuse a log-in (RFC 4954 §6)."""
_UNCLEAR: Rows = (
    ("5.3.", B.REFUSED_RECIPIENT),
    ("5.4.", B.REFUSED_RECIPIENT),
    ("5.7.", B.POLICY),
)
"""Codes of the system, of routes and of rules, but not of addresses (RFC 3463 §3)."""


class Diagnosis(NamedTuple):
    """The codes of a text, and its words in lower case.

    The words exclude addresses, where a name like `spf` means nothing.
    """

    code: int
    """0 without a code."""
    enhanced: str
    """Empty without an enhanced code."""
    words: str

    @property
    def is_temporary(self) -> bool:
        """Return whether the code means a temporary failure."""
        return self.enhanced.startswith("4.") or (not self.enhanced and self.code // 100 == 4)


def diagnose(text: str) -> Diagnosis:
    """Return the codes and the words of a text, like `smtp; 550-5.1.1 <a@x.test> unknown`."""
    cut = " ".join(text[:READ_LIMIT].split())
    words = " ".join(word for word in cut.split() if "@" not in word).lower()
    code, enhanced = _CODE.search(cut), _STATUS.search(cut)
    return Diagnosis(int(code[1]) if code else 0, enhanced[1] if enhanced else "", words)


def of_report(text: str) -> BounceClass | None:
    """Return the class of a bounce that a service or a bounce mail reports; None if unclear.

    `text` has the codes and the words of the server that refused the mail.
    """
    diagnosis = diagnose(text)
    if diagnosis.is_temporary:
        by_words = _by_words(diagnosis.words)
        is_clear = by_words is B.FULL_MAILBOX or by_words in SENDING_SIDE
        return by_words if is_clear else B.TEMPORARY
    unclear = next((each for code, each in _UNCLEAR if diagnosis.enhanced.startswith(code)), None)
    return _clear(diagnosis) or unclear


def of_bounce(text: str, *, hard: bool, soft: bool) -> tuple[str, bool]:
    """Return the type of a reported bounce, and whether it is soft.

    The type is `bounced` for a dead address and `failed` for any other. `hard` and `soft` are the
    service's own verdict. If the server's words say something else, they count instead.
    """
    bounce_class = of_report(text)
    if hard and (bounce_class is None or bounce_class.suppresses):
        return "bounced", False
    if bounce_class is None:
        return "failed", soft
    return "failed", bounce_class.is_soft or (soft and bounce_class.suppresses)


def of_reply(stage: Stage | None, status: int, text: str) -> BounceClass:
    """Return the class of a 4xx or 5xx SMTP reply, by the command that it answers."""
    diagnosis = diagnose(f"{status} {text}")
    if status < 500:
        return B.BUSY_MAILBOX if _is_of_one_mailbox(stage, diagnosis) else B.TEMPORARY
    if stage is Stage.CONNECT and status not in _LOGIN:
        return B.TEMPORARY  # 521, 554: this server takes no mail now
    clear = _clear(diagnosis)
    if status in _LOGIN and clear not in (B.SENDER, B.AUTHENTICATION):
        return B.LOGIN
    if stage is Stage.MAIL:
        return _of_sender(status, diagnosis, clear)
    if stage is Stage.RCPT:
        return _of_recipient(status, diagnosis, clear)
    if clear and clear is not B.POLICY:
        return clear
    return B.REFUSED_RECIPIENT if diagnosis.enhanced.startswith(("5.2.", "5.4.")) else B.CONTENT


def _clear(diagnosis: Diagnosis) -> BounceClass | None:
    """Return the class of a permanent failure, if its codes or words are clear, else None."""
    by_code = next((each for row, each in _ENHANCED if row.fullmatch(diagnosis.enhanced)), None)
    by_words = _by_words(diagnosis.words)
    if by_code in RECIPIENT_SIDE and by_words in (*SENDING_SIDE, B.BUSY_MAILBOX):
        return by_words
    if by_code is None and diagnosis.enhanced == "5.2.1" and "disabled" in diagnosis.words:
        is_clear = by_words in (*SENDING_SIDE, B.BUSY_MAILBOX)
        return by_words if is_clear else B.DISABLED_MAILBOX
    return by_code or by_words


def _by_words(words: str) -> BounceClass | None:
    """Return the class of the first row of WORDS that matches."""
    return next((bounce_class for row, bounce_class in _WORDS if row.fullmatch(words)), None)


def _is_of_one_mailbox(stage: Stage | None, diagnosis: Diagnosis) -> bool:
    """Return whether a temporary refusal concerns one recipient: greylisting, a full mailbox."""
    if _by_words(diagnosis.words) in SENDING_SIDE:
        return False
    if stage is not Stage.RCPT:
        return diagnosis.enhanced.startswith("4.2.")
    if diagnosis.enhanced.startswith(("4.1.", "4.2.")) or re.search(
        "gr[ae]y-?list", diagnosis.words
    ):
        return True
    return diagnosis.code == 450 and not diagnosis.enhanced


def _of_recipient(status: int, diagnosis: Diagnosis, clear: BounceClass | None) -> BounceClass:
    """Return the class of a refused RCPT."""
    if clear is B.POLICY and status in (501, 553):  # the mailbox's name is wrong
        return B.REFUSED_RECIPIENT
    if clear:
        return clear
    if status == 552 and not diagnosis.enhanced:
        return B.FULL_MAILBOX
    return B.POLICY if diagnosis.enhanced.startswith("5.7.") else B.REFUSED_RECIPIENT


def _of_sender(status: int, diagnosis: Diagnosis, clear: BounceClass | None) -> BounceClass:
    """Return the class of a refused MAIL, which names the sender and the message's size."""
    if clear is B.CONTENT or (status == 552 and clear is None):
        return B.CONTENT  # RFC 1870 §6.1: the SIZE that we stated is too big
    if clear in (B.ACCOUNT, B.HOST, B.LOGIN, B.RELAY, B.AUTHENTICATION, B.MALFORMED_SENDER):
        return clear
    if status == 501 or re.search("malformed|syntax|bad address|invalid address", diagnosis.words):
        return B.MALFORMED_SENDER
    return B.SENDER
