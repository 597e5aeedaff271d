"""Bounce classes: the cause of a refused mail, by the codes and words of the refusal.

One table for replies of SMTP servers, reports of email services and bounce mails; `bounces` reads
it.

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

from collections.abc import Sequence
from enum import StrEnum

from rme.core.provider.refusals import (
    CONTENT,
    DEAD,
    ELSEWHERE,
    LATER,
    MESSAGE_LATER,
    MISCONFIGURED,
    RECIPIENT,
    RefusalMeaning,
)


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
SENDING_SIDE = frozenset({B.SENDER, B.AUTHENTICATION, B.ACCOUNT, B.HOST, B.RELAY, B.LOGIN})
RECIPIENT_SIDE = frozenset(
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
