"""Bounce classes: the cause of a refused mail, by the codes and words of the refusal.

One table for replies of SMTP servers, reports of email services and bounce mails.

| class | whose fault | what follows |
|---|---|---|
| UNKNOWN_MAILBOX, DISABLED_MAILBOX | the recipient's | the address is suppressed; next channel |
| FULL_MAILBOX | the recipient's | next channel |
| BUSY_MAILBOX | the recipient's, for now | next account, then later |
| REFUSED_RECIPIENT | the recipient's, as it seems | next account, then next channel |
| CONTENT | the message's | it fails |
| MALFORMED_SENDER | the request's | next account, then it fails |
| SENDER, AUTHENTICATION, POLICY | the sender's | next account, then later |
| ACCOUNT, HOST, RELAY, TEMPORARY | the account's, its server's | as above; counts in its circuit |
| LOGIN | the account's | as above; opens its circuit |

Only a mailbox that is clearly unknown or disabled is suppressed. If the words blame the sender,
the code doesn't count: servers also answer `550 5.1.1` and `5.2.1` for blocks and rates.

Sources: RFC 5321 §4.2, RFC 3463, IANA's registry of enhanced codes (RFC 5248), RFC 7372 and 7505;
https://support.google.com/a/answer/3726730 (Gmail), "Email non-delivery reports in Exchange Online"
(learn.microsoft.com), https://senders.yahooinc.com/smtp-error-codes/; the texts of Postfix, Exim,
qmail and cPanel.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from rme.core.provider.refusals import (
    CONTENT,
    DEAD,
    ELSEWHERE,
    LATER,
    MESSAGE_LATER,
    MISCONFIGURED,
    RECIPIENT,
    RefusalMeaning,
    compile_row,
)
from rme.transport.messages import Stage

READ_LIMIT = 2000
"""How many characters of a text are read."""


class BounceClass(StrEnum):
    """Why a mail was refused."""

    UNKNOWN_MAILBOX = "UNKNOWN_MAILBOX"
    DISABLED_MAILBOX = "DISABLED_MAILBOX"
    FULL_MAILBOX = "FULL_MAILBOX"
    BUSY_MAILBOX = "BUSY_MAILBOX"
    REFUSED_RECIPIENT = "REFUSED_RECIPIENT"
    CONTENT = "CONTENT"
    MALFORMED_SENDER = "MALFORMED_SENDER"
    SENDER = "SENDER"
    AUTHENTICATION = "AUTHENTICATION"
    """SPF, DKIM or DMARC of the sender's domain."""
    POLICY = "POLICY"
    ACCOUNT = "ACCOUNT"
    """The account reached a limit, or may not send."""
    HOST = "HOST"
    """Our server's IP address or name is blocked or listed."""
    RELAY = "RELAY"
    """The server doesn't relay our mail."""
    LOGIN = "LOGIN"
    TEMPORARY = "TEMPORARY"

    @property
    def meaning(self) -> RefusalMeaning:
        """Return the meaning of a refusal of this class for a send."""
        return _MEANINGS[self]

    @property
    def suppresses(self) -> bool:
        """Return whether the address is dead."""
        return self.meaning is DEAD

    @property
    def is_soft(self) -> bool:
        """Return whether it counts as a soft bounce: the address may be out of use."""
        return self in _SOFT


B = BounceClass
_MEANINGS: dict[BounceClass, RefusalMeaning] = {
    B.UNKNOWN_MAILBOX: DEAD,
    B.DISABLED_MAILBOX: DEAD,
    B.FULL_MAILBOX: RECIPIENT,
    B.BUSY_MAILBOX: MESSAGE_LATER,
    B.REFUSED_RECIPIENT: ELSEWHERE,
    B.CONTENT: CONTENT,
    B.MALFORMED_SENDER: ELSEWHERE,
    B.SENDER: MESSAGE_LATER,
    B.AUTHENTICATION: MESSAGE_LATER,
    B.POLICY: MESSAGE_LATER,
    B.ACCOUNT: LATER,
    B.HOST: LATER,
    B.RELAY: LATER,
    B.LOGIN: MISCONFIGURED,
    B.TEMPORARY: LATER,
}
_SOFT = frozenset({B.FULL_MAILBOX, B.BUSY_MAILBOX, B.REFUSED_RECIPIENT, B.TEMPORARY})
_SENDING_SIDE = frozenset({B.SENDER, B.AUTHENTICATION, B.ACCOUNT, B.HOST, B.RELAY, B.LOGIN})
_RECIPIENT_SIDE = frozenset(
    {B.UNKNOWN_MAILBOX, B.DISABLED_MAILBOX, B.FULL_MAILBOX, B.BUSY_MAILBOX, B.REFUSED_RECIPIENT}
)

Rows = Sequence[tuple[str, BounceClass]]
ENHANCED: Rows = (
    # Codes that are clear without words. `5.1.0`, `5.2.1`, `5.4.x` and `5.7.1` aren't.
    (r"5\.1\.([126]|10)", B.UNKNOWN_MAILBOX),  # no such mailbox or host; moved; null MX
    (r"5\.1\.7", B.MALFORMED_SENDER),
    (r"5\.1\.8", B.SENDER),  # the sender's domain; Exchange: a sender that sent spam
    (r"5\.1\.90", B.ACCOUNT),  # Exchange: the day's limit of recipients
    (r"5\.2\.2", B.FULL_MAILBOX),
    (r"5\.2\.12[12]", B.BUSY_MAILBOX),  # Exchange: the recipient's limit for an hour
    (r"5\.(2\.3|3\.4|6\.\d+|1\.20)", B.CONTENT),  # too long, too big, cannot be taken, two From
    (r"5\.4\.4", B.REFUSED_RECIPIENT),  # no route
    (r"5\.7\.(8|57)", B.LOGIN),  # RFC 4954; Exchange: not logged in
    (r"5\.7\.64", B.RELAY),  # Exchange
    (r"5\.7\.(60|50[1-6])", B.SENDER),  # Exchange: may not send as this; banned sender
    (r"5\.7\.(2[0-4679]|30|509)", B.AUTHENTICATION),  # RFC 7372, 7505, 8617; Gmail; Exchange
    (r"5\.7\.(28|23[23]|508|70[0-7]|7[1-5]\d)", B.ACCOUNT),  # floods; limits of a tenant
    (r"5\.7\.(25|511|60[6-9]|6[1-4]\d|708)", B.HOST),  # no reverse name; banned IP addresses
    (r"5\.7\.1(2|2\d|3\d)", B.REFUSED_RECIPIENT),  # Exchange: a group takes mail of few senders
)
WORDS: Rows = (
    # The first match counts. Rows are matched against the text without its addresses.
    # --- the account: limits and suspensions
    (r"(daily|hourly|weekly|monthly)\b.{0,40}\b(limit|quota|maximum)", B.ACCOUNT),
    (
        r"\b(exceed|limit|max|quota|too many|reached)\w{0,8}\b.{0,80}"
        r"\b(per|an|each|every) (second|minute|hour|day|month)\b",
        B.ACCOUNT,
    ),
    (
        # a mailbox's own quota (RFC 3463 §3.3; RFC 5321 §4.2.2: 552)
        r"\b([45]\.2\.2|552)\b.{0,80}\b(e?-?mail|message|recipient|user)s? (quota|limit)\b",
        B.FULL_MAILBOX,
    ),
    (
        r"\b(sending|submission|outbound|outgoing|relay|message|email|mail|recipient|connection)s?"
        r" (rate|limit|quota|volume)s?\b.{0,40}(exceed|reached|used up|exhaust|hit\b|over\b)",
        B.ACCOUNT,
    ),
    (r"\b(number of|limit on)\b.{0,40}\b(outgoing|outbound|sent) (message|e?-?mail)s", B.ACCOUNT),
    (r"\bsubmissionquotaexceeded", B.ACCOUNT),  # Exchange
    (r"\bout of credits?\b|\bcredits? (\w+ ){0,2}(exceed|exhaust|used up)", B.ACCOUNT),  # SendGrid
    (r"\bexceed\w* .{0,30}\b(sending|messag\w+|connection|rate) (limit|quota|rate)", B.ACCOUNT),
    (r"\breceiving (e?-?mail|messages) (at a rate|too (quickly|fast))", B.BUSY_MAILBOX),
    (r"\bunusual (sending|rate|volume|activit)", B.ACCOUNT),
    (r"\b(rate.?limit|throttl|mail flood)", B.ACCOUNT),
    (
        r"\btoo (many|much) ((invalid|unknown|bad) )?"
        r"(message|e?-?mail|connection|session|recipient|user|concurrent)",
        B.ACCOUNT,
    ),
    (r"\bsending (is |has been |was )?(denied|disabled|suspended|blocked)", B.ACCOUNT),
    (r"\byour (account|mailbox|subscription) (is|has|was|may)\b", B.ACCOUNT),
    # --- the host: listed, blocked, without a name
    (r"\b(spamhaus|spamcop|sorbs|abuseat|barracudacentral|senderbase|cloudmark)\b", B.HOST),
    (r"\b(dns|r|u|s)bls?\b", B.HOST),
    (r"\b(black|block|deny)[ -]?list", B.HOST),
    (r"\b(poor|low|bad|ip|domain|sender|network) reputation", B.HOST),
    (
        r"\b(client|sending|connecting|remote|source|your) (host|ip|server|network|mail server)\b"
        r".{0,80}\b(reject|block|bann|denied|list|refus|not (allow|authori|permit|accept))",
        B.HOST,
    ),
    (r"\b(the )?ip\b.{0,60}\b(block|bann|listed|not (allow|authori|permit|accept))", B.HOST),
    (r"\bbanned (sending )?ip", B.HOST),
    (r"\bblocked (-|using|by|see|due to|because)", B.HOST),
    (r"\b(reverse (dns|hostname|name)|rdns|ptr|helo|ehlo)\b", B.HOST),
    # --- log-in, relaying
    (r"\bresolver\.rst\b", B.REFUSED_RECIPIENT),  # Exchange: a group for few senders
    (r"\brecipient address rejected: access denied", B.REFUSED_RECIPIENT),  # Exchange Online
    (r"\bmailbox name not allowed", B.REFUSED_RECIPIENT),  # RFC 5321 §4.2.2: 553
    (r"\b(smtp|turn on) (smtp )?auth", B.LOGIN),
    (r"\bauthentication (is )?(required|needed)", B.LOGIN),
    (r"\b(must|need to|please|should) (first )?(authenticate|log ?in|sign ?in)", B.LOGIN),
    (r"\b(not (authenticated|logged in)|without authentication)", B.LOGIN),
    (r"\brelay(ing)?\b.{0,20}\b(denied|prohibited|refused|disabled|not (allow|permit))", B.RELAY),
    (
        r"\b(not permitted|unable|not allowed|denied|cannot|can.?t|won.?t|do(es)? not|don.?t"
        r"|refus\w+|not authori[sz]ed) to relay|\b(do(es)? not|don.?t) relay",
        B.RELAY,
    ),
    (r"\brcpthosts\b", B.RELAY),  # qmail
    # --- the sender's address and domain
    (r"\b(spf|dkim|dmarc|sender policy framework)\b", B.AUTHENTICATION),
    (r"\b(sender|mail|message|email) (is |was )?unauthenticated", B.AUTHENTICATION),
    (r"\bunauthenticated (sender|mail|message|email)", B.AUTHENTICATION),
    (
        r"\b(sender|from (address|header)|mail from|envelope from|return[ -]?path)\b.{0,40}"
        r"\b(denied|reject|refus|block|bann|invalid|unknown|verif|not (allow|accept|own|found"
        r"|exist|authori|permit|valid))",
        B.SENDER,
    ),
    (r"\b(not (allowed|authori[sz]ed|permitted) to send|send ?as ?denied)", B.SENDER),
    (
        r"\b(verification failed|call(back|out)s? (\w+ )?fail\w*|badmailfrom|bad outbound)",
        B.SENDER,
    ),
    (r"\b(client|connecting|remote|return|your) (ip |e?-?mail )?address\b", B.SENDER),
    (r"\b(allow|white|safe)[ -]?list", B.SENDER),
    # --- words of mailboxes that are about the sending side
    (
        r"\b(sending|outbound|outgoing) (from )?(this |the |your )?(account|mailbox|user)\b",
        B.ACCOUNT,
    ),
    (
        r"\b(account|mailbox|user)\b.{0,60}\b(due to|because of) (\w+ )?(spam|abuse)\b"
        r"|\b(account|mailbox|user)\b.{0,60}\bfor sending\b",
        B.ACCOUNT,
    ),
    (r"\bfrom (your|this) (ip|host|server|network|provider)\b", B.HOST),
    (r"\b(external|outside) senders?\b", B.REFUSED_RECIPIENT),
    (r"\bauthentication\b.{0,20}\b(fail|database)", B.AUTHENTICATION),
    (r"\blist of (authori[sz]ed|allowed|permitted) (sender|client|host)s?\b", B.SENDER),
    # --- the message: too large
    (r"\b(message|mail|size)\b.{0,30}\b(too (large|big|long)|exceeds)", B.CONTENT),
    (r"\b(exceeds?|maximum|max) (the )?(fixed |maximum )?(message )?size", B.CONTENT),
    # --- the mailbox
    (r"\b(mailbox|inbox|mail ?folder|account|storage|disk)\b.{0,20}\bfull\b", B.FULL_MAILBOX),
    (r"\b(over|exceed\w*)\b.{0,20}\b(quota|storage|allocation)", B.FULL_MAILBOX),
    (r"\b(quota|storage)\b.{0,20}\bexceed", B.FULL_MAILBOX),
    (r"\b(out of|insufficient|no) (disk |mailbox )?(storage|space)", B.FULL_MAILBOX),
    # --- for now, whatever the code: a server that greylists, a mailbox that comes back
    (r"\bgr[ae]y-?list|\btemporar(y|ily)\b|\btry (again )?later\b", B.BUSY_MAILBOX),
    (
        r"\b(account|mailbox|user|address|recipient|inbox)\b.{0,60}"
        r"\b(disabled|deactivated|inactive|discontinued|closed|terminated|deleted"
        r"|no longer (available|active|accept|valid|exist|in use|here|with))",
        B.DISABLED_MAILBOX,
    ),
    (r"\b(no such|unknown|non-?existent) (local )?(user|mailbox|recipient|address|person|account"
     r"|e?-?mail|alias|destination)", B.UNKNOWN_MAILBOX),
    (r"\binvalid (user|mailbox|recipient)", B.UNKNOWN_MAILBOX),
    (
        r"\b(user|mailbox|recipient|address|account|alias|person)\b.{0,60}\b(unknown|not known"
        r"|not (be )?found|(does|do|did)(n.?t| not) exist|not exist|not listed|no longer on)",
        B.UNKNOWN_MAILBOX,
    ),
    (r"\bno (valid )?(mailbox|account)\b|\bnot our customer", B.UNKNOWN_MAILBOX),
    (r"\brecip(ient)?notfound", B.UNKNOWN_MAILBOX),  # Exchange
    (r"\bdoes(n.?t| not) have an? \S{1,60} account|\bunrouteable address", B.UNKNOWN_MAILBOX),
    (r"\bnull mx\b", B.UNKNOWN_MAILBOX),
    (r"\b(benutzer|empf.nger)\b.{0,20}\bunbekannt|\bunbekannter (benutzer|em)", B.UNKNOWN_MAILBOX),
    (r"\b(utilisateur|destinataire) inconnu|\b(usuario|destinatario) (desconocido|sconosciuto)"
     r"|\butente (sconosciuto|non trovato)", B.UNKNOWN_MAILBOX),
    # --- the content, and rules without a reason
    (
        r"\b(spam|virus|malware|phish\w*|unsolicited|bulk mail|junk|attachment|infected)\b",
        B.CONTENT,
    ),
    (r"\b(message|content)\b.{0,20}\b(reject|refus|filter|not accept|violat|suspect)", B.CONTENT),
    (r"\b(policy|polic(ies|y)|prohibit\w*|access denied|not (allowed|permitted|authori[sz]ed)"
     r"|administrative\w*|banned|blocked|security)\b", B.POLICY),
)  # fmt: skip


def word_row(row: str) -> str:
    """Return a row of WORDS as a pattern of a whole text."""
    return f".*(?:{row}).*"


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
        is_clear = by_words is B.FULL_MAILBOX or by_words in _SENDING_SIDE
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
    if by_code in _RECIPIENT_SIDE and by_words in (*_SENDING_SIDE, B.BUSY_MAILBOX):
        return by_words
    if by_code is None and diagnosis.enhanced == "5.2.1" and "disabled" in diagnosis.words:
        is_clear = by_words in (*_SENDING_SIDE, B.BUSY_MAILBOX)
        return by_words if is_clear else B.DISABLED_MAILBOX
    return by_code or by_words


def _by_words(words: str) -> BounceClass | None:
    """Return the class of the first row of WORDS that matches."""
    return next((bounce_class for row, bounce_class in _WORDS if row.fullmatch(words)), None)


def _is_of_one_mailbox(stage: Stage | None, diagnosis: Diagnosis) -> bool:
    """Return whether a temporary refusal concerns one recipient: greylisting, a full mailbox."""
    if _by_words(diagnosis.words) in _SENDING_SIDE:
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
