"""What servers in the field answer, and whose fault that is."""

import pytest

from rme.core.provider import bounces
from rme.core.provider.bounces import BounceClass as B
from rme.core.provider.refusals import DEAD
from rme.transport import Stage

RCPT = [
    # The mailbox does not exist: by code (RFC 3463 §3.2, RFC 7505, Exchange), or by words.
    (B.UNKNOWN_MAILBOX, "550-5.1.1 The email account that you tried to reach does not exist. Please"
     " try 550-5.1.1 double-checking the recipient's email address for typos or 550 5.1.1"
     " unnecessary spaces. https://support.google.com/mail/?p=NoSuchUser a1-20 - gsmtp"),  # Gmail
    (B.UNKNOWN_MAILBOX, "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP"
     " address lookup"),  # Exchange Online
    (B.UNKNOWN_MAILBOX, "556 5.1.10 Recipient address has null MX"),  # RFC 7505 §4.1
    (B.UNKNOWN_MAILBOX, "550 5.1.1 <a@x.test>: Recipient address rejected: User unknown in relay"
     " recipient table"),  # Postfix relay_recipient_maps: a relay in the words, and no relaying
    (B.UNKNOWN_MAILBOX, "550 5.1.1 <spf@x.test>: Recipient address rejected: User unknown in"
     " virtual mailbox table"),  # Postfix; the address holds a word
    (B.UNKNOWN_MAILBOX, "550 5.1.1 User unknown (host mx1.ess.barracudanetworks.com)"),  # Barracuda
    (B.UNKNOWN_MAILBOX, "550 5.1.2 bad destination host"),  # RFC 3463 §3.2
    (B.UNKNOWN_MAILBOX, "551 5.1.6 moved, no forwarding address"),  # RFC 3463 §3.2
    (B.UNKNOWN_MAILBOX, "550 No Such User Here"),  # Exim, cPanel
    (B.UNKNOWN_MAILBOX, "550 Unrouteable address"),  # Exim
    (B.UNKNOWN_MAILBOX, "550 Unknown user"),  # Exim
    (B.UNKNOWN_MAILBOX, "550 sorry, no mailbox here by that name. (#5.1.1)"),  # qmail
    (B.UNKNOWN_MAILBOX, "511 sorry, no mailbox here by that name (chkuser)"),  # qmail chkuser
    # Yahoo
    (B.UNKNOWN_MAILBOX, "554 delivery error: dd This user doesn't have a yahoo.com account"),
    (B.UNKNOWN_MAILBOX, "550 Mailbox not found. http://service.mail.qq.com/detail/0/31"),  # QQ
    (B.UNKNOWN_MAILBOX, "550 Message was not accepted -- invalid mailbox. Local mailbox is"
     " unavailable: user not found"),  # Mail.ru
    (B.UNKNOWN_MAILBOX, "550 5.1.1 Adresse d au moins un destinataire invalide. Invalid recipient."
     " OFR_416 [416]"),  # Orange
    (B.UNKNOWN_MAILBOX, "550 Benutzer hier unbekannt"),  # German servers
    # The mailbox is switched off.
    # Gmail
    (B.DISABLED_MAILBOX, "550 5.2.1 The email account that you tried to reach is disabled."),
    # Gmail
    (B.DISABLED_MAILBOX, "550-5.2.1 The email account that you tried to reach is inactive."),
    (B.DISABLED_MAILBOX, "550 5.2.1 disabled"),  # RFC 3463 §3.3
    (B.DISABLED_MAILBOX, "554 30 Sorry, your message cannot be delivered. This mailbox is disabled"
     " (554.30)."),  # Yahoo
    (B.DISABLED_MAILBOX, "554 delivery error: dd This account has been disabled or discontinued"
     " [#102]."),  # Yahoo
    # It is full, or gets too much: RFC 3463 §3.3, Gmail, RFC 5321 §4.2.3 (552).
    (B.FULL_MAILBOX, "552 5.2.2 The email account that you tried to reach is over quota and"
     " inactive."),  # Gmail
    (B.FULL_MAILBOX, "552 5.2.2 mailbox full"),
    (B.FULL_MAILBOX, "552 sorry, user is over quota (#5.2.2)"),  # qmail
    (B.FULL_MAILBOX, "550 Mailbox quota exceeded"),
    (B.FULL_MAILBOX, "552 5.2.2 Mail quota exceeded"),
    (B.FULL_MAILBOX, "550 5.2.2 Recipient address rejected: Email quota exceeded"),
    (B.FULL_MAILBOX, "552 Message quota exceeded"),
    (B.FULL_MAILBOX, "550 5.2.2 User mail limit reached"),
    (B.FULL_MAILBOX, "552 storage full"),
    (B.FULL_MAILBOX, "552 no"),
    (B.BUSY_MAILBOX, "550-5.2.1 The user you are trying to contact is receiving mail at a rate that"
     " 550-5.2.1 prevents additional messages from being delivered."),  # Gmail
    (B.BUSY_MAILBOX, "550 5.2.121 Recipient's per hour message receive limit"),  # Exchange Online
    # It is not clear: 550 says "not found, no access, or rejected for policy" (RFC 5321 §4.2.3).
    (B.REFUSED_RECIPIENT, "550 5.2.1 Mailbox unavailable"),
    # Outlook.com
    (B.REFUSED_RECIPIENT, "550 5.5.0 Requested action not taken: mailbox unavailable (S201)"),
    (B.UNKNOWN_MAILBOX, "550 Recipient Rejected: No account by that name here"),
    # GMX, Outlook.com
    (B.REFUSED_RECIPIENT, "550 Requested action not taken: mailbox unavailable"),
    # Exchange
    (B.REFUSED_RECIPIENT, "550 5.4.1 Recipient address rejected: Access denied. AS(201806281)"),
    (B.REFUSED_RECIPIENT, "550 5.4.4 Host or domain name not found"),  # RFC 3463 §3.5
    # Exchange
    (B.REFUSED_RECIPIENT, "550 5.7.1 RESOLVER.RST.AuthRequired; authentication required"),
    (B.REFUSED_RECIPIENT, "550 5.7.133 SenderNotAuthenticatedForGroup"),  # Exchange
    (B.REFUSED_RECIPIENT, "553 mailbox name not allowed"),  # RFC 5321 §4.2.2
    (B.REFUSED_RECIPIENT, "553 malformed address"),
    (B.REFUSED_RECIPIENT, "501 5.1.3 bad address"),  # RFC 3463 §3.2: its syntax
    (B.REFUSED_RECIPIENT, "551 User not local"),  # RFC 5321 §3.4
    # Words that blame the sending side, or say "for now", beside words of dead mailboxes
    (B.BUSY_MAILBOX, "550 5.1.1 Greylisted, please try again later"),
    (B.BUSY_MAILBOX, "550 5.2.1 mailbox temporarily disabled, try again later"),
    (B.BUSY_MAILBOX, "550 Mailbox temporarily disabled"),
    (B.ACCOUNT, "550 Too many invalid recipients"),
    (B.ACCOUNT, "550 5.1.1 Too many invalid users in this session, blocked"),
    (B.SENDER, "550 Callout verification failed: 550 unknown user"),
    (B.SENDER, "550 Client address not found in DNS"),
    (B.SENDER, "550 Return address not found"),
    (B.SENDER, "550 your email address does not exist, callback failed"),
    (B.SENDER, "550 address does not exist in the allow list of senders"),
    (B.HOST, "550 Account closed for delivery from this host"),
    (B.REFUSED_RECIPIENT, "550 user's inbox is closed for external senders"),
    (B.REFUSED_RECIPIENT, "550 no"),
    # The account: its limits.
    (B.ACCOUNT, "550 Domain x.test has exceeded the max emails per hour (100/100 (100%)) allowed."
     " Message discarded."),  # cPanel
    (B.ACCOUNT, "550 5.4.5 Daily user sending limit exceeded."),  # Gmail
    (B.ACCOUNT, "550 5.4.6 Unusual sending activity detected. Please try after sometime."),  # Zoho
    (B.ACCOUNT, "550 5.2.2 Submission quota exceeded"),  # Exchange: not the recipient's
    # Exchange
    (B.ACCOUNT, "550 5.1.90 Your message can't be sent because you've reached your daily limit"),
    (B.ACCOUNT, "550 5.7.1 Email quota exceeded."),  # Gmail
    (B.ACCOUNT, "554 5.7.0 Your message could not be sent. The limit on the number of allowed"
     " outgoing messages was exceeded."),
    (B.ACCOUNT, "554 5.2.0 STOREDRV.Submission; SubmissionQuotaExceededException"),
    (B.ACCOUNT, "554 Sending quota has been used up for this account"),
    (B.ACCOUNT, "550 Maximum credits exceeded"),
    (B.ACCOUNT, "554 Out of credits"),
    (B.ACCOUNT, "550 5.7.1 Daily SMTP relay limit exceeded for customer."),  # Gmail
    (B.ACCOUNT, "550 5.7.705 Access denied, tenant has exceeded threshold"),  # Exchange
    (B.ACCOUNT, "550-5.7.28 Gmail has detected an unusual rate of unsolicited mail"),  # Gmail
    (B.ACCOUNT, "550 5.7.0 Mail Sending denied."),  # Gmail
    # The host: listed or blocked (RFC 5782 for lists), or without a reverse name (RFC 7372).
    # Words of mailboxes that are about the sending side.
    (B.ACCOUNT, "550 5.7.1 Sending from this account has been disabled"),
    (B.ACCOUNT, "550 The sending account does not exist"),
    (B.ACCOUNT, "550 Account disabled due to spam sending, contact your provider"),
    (B.ACCOUNT, "550 5.7.1 user account has been closed for sending"),
    (B.HOST, "550 The recipient no longer accepts mail from your IP range"),
    (B.AUTHENTICATION, "550 authentication failed: user unknown"),
    (B.SENDER, "550 address not listed in our list of authorized senders"),
    (B.HOST, "550 Blocked - see https://www.spamhaus.org/query/ip/192.0.2.1"),
    (B.HOST, "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using"
     " zen.spamhaus.org"),  # Postfix
    (B.HOST, "553 5.7.1 [BL21] Connections will not be accepted from 192.0.2.1, because the ip is"
     " in Spamhaus's list"),  # Yahoo
    (B.HOST, "550 5.1.1 unsolicited mail, 192.0.2.1 is on our blocklist"),  # a misused code
    (B.HOST, "550 5.7.1 [192.0.2.1] The IP you're using to send mail is not authorized"),  # Gmail
    (B.HOST, "550 5.7.606 Access denied, banned sending IP [192.0.2.1]"),  # Exchange
    (B.HOST, "550 5.7.708 Service unavailable. Access denied, traffic not accepted from this IP"),
    # RFC 7372
    (B.HOST, "550 5.7.25 The IP address sending this message does not have a PTR record"),
    (B.HOST, "554 5.7.1 Client host rejected: cannot find your reverse hostname"),  # Postfix
    # It relays for nobody, or wants a log-in.
    (B.RELAY, "554 5.7.1 <a@x.test>: Relay access denied"),  # Postfix
    (B.RELAY, "553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)"),  # qmail
    (B.RELAY, "550 relay not permitted"),  # Exim
    (B.RELAY, "550 5.7.64 TenantAttribution; Relay Access Denied"),  # Exchange
    (B.LOGIN, "550 Please turn on SMTP Authentication in your mail client."),  # cPanel
    (B.LOGIN, "530 5.7.57 Client not authenticated to send mail"),  # Exchange
    (B.LOGIN, "530-5.5.1 Authentication Required."),  # Gmail
    # The sender: its address, its domain's records.
    (B.SENDER, "550 5.1.0 Sender denied"),  # Exchange
    (B.SENDER, "553 5.7.1 <a@y.test>: Sender address rejected: not owned by user b"),  # Postfix
    (B.SENDER, "550-Verification failed for <a@y.test> 550-No Such User Here 550 Sender verify"
     " failed"),  # Exim: the user is the sender
    (B.SENDER, "550 5.1.0 <a@y.test>: Sender address rejected: User unknown in virtual table"),
    (B.SENDER, "553 sorry, your envelope sender is in my badmailfrom list (#5.7.1)"),  # qmail
    (B.SENDER, "550 5.1.8 Access denied, bad outbound sender AS(42003)"),  # Exchange
    # Exchange
    (B.SENDER, "550 5.7.60 SMTP; Client does not have permissions to send as this sender"),
    (B.AUTHENTICATION, "550 SPF check failed"),
    (B.AUTHENTICATION, "550 5.7.23 The message was rejected because SPF failed"),  # RFC 7372 §3.2
    (B.AUTHENTICATION, "550-5.7.26 This mail has been blocked because the sender is"
     " unauthenticated."),  # Gmail
    (B.AUTHENTICATION, "550 5.7.509 Access denied, sending domain does not pass DMARC"),  # Exchange
    # A rule, and it does not say which.
    (B.POLICY, "550 Administrative prohibition"),  # Exim
    (B.POLICY, "550 5.7.1 policy"),
    (B.POLICY, "554 5.7.0 no"),
    # The content, already at RCPT.
    (B.CONTENT, "550 5.7.1 Message rejected as spam"),
    # Not now: RFC 5321 §4.2.1, RFC 6647 (greylisting), RFC 3463 (4.2.x is the mailbox's).
    (B.TEMPORARY, "451 4.3.0 Temporary lookup failure"),
    (B.TEMPORARY, "421 4.7.0 Our system has detected an unusual rate of unsolicited mail"),  # Gmail
    (B.TEMPORARY, "450 4.2.1 Peak SMTP relay limit exceeded for customer"),  # Gmail
    (B.BUSY_MAILBOX, "450 4.2.0 Greylisted"),
    (B.BUSY_MAILBOX, "451 4.7.1 Greylisting in action, please come back later"),
    (B.BUSY_MAILBOX, "452 4.2.2 mailbox full"),
    (B.BUSY_MAILBOX, "450 4.1.1 unverified address"),  # Postfix
    (B.BUSY_MAILBOX, "450 mailbox busy"),
]  # fmt: skip
OTHERS = [
    # At MAIL no recipient is known: it is about the sender, or about us.
    (B.SENDER, Stage.MAIL, "550 5.1.1 no such user"),
    (B.SENDER, Stage.MAIL, "550 no"),
    (B.SENDER, Stage.MAIL, "550 5.7.1 you may not send as this"),
    (B.SENDER, Stage.MAIL, "553 5.1.8 no such domain"),
    (B.MALFORMED_SENDER, Stage.MAIL, "553 malformed address"),
    (B.MALFORMED_SENDER, Stage.MAIL, "501 5.1.7 bad sender"),  # RFC 3463 §3.2
    (B.MALFORMED_SENDER, Stage.MAIL, "501 Syntax error in parameters"),  # RFC 5321 §4.2.3
    (B.HOST, Stage.MAIL, "554 5.7.1 Client host blocked using bl.spamcop.net"),
    (B.ACCOUNT, Stage.MAIL, "550 5.4.5 Daily user sending limit exceeded"),
    (B.LOGIN, Stage.MAIL, "530 5.7.0 log in first"),  # RFC 4954 §6
    (B.CONTENT, Stage.MAIL, "552 5.3.4 Message size exceeds fixed limit"),  # RFC 1870 §6.1
    (B.CONTENT, Stage.MAIL, "552 too big"),
    # At the greeting and EHLO: this server takes nothing now, another may.
    (B.TEMPORARY, Stage.CONNECT, "554 5.3.2 no service"),
    (B.TEMPORARY, Stage.CONNECT, "521 no mail here"),  # RFC 7504
    (B.TEMPORARY, Stage.CONNECT, "554 5.7.1 Blocked - see https://www.spamhaus.org/"),
    # After DATA: what is not clear is the content's fault.
    (B.SENDER, Stage.END, "530 From/Sender domain is not verified for this workspace."),  # Emailit
    (B.CONTENT, Stage.END, "550 5.7.1 spam"),
    (B.CONTENT, Stage.END, "554 5.7.9 Message not accepted for policy reasons"),  # Yahoo
    (B.CONTENT, Stage.END, "550 5.7.1 no"),
    (B.CONTENT, Stage.END, "554 5.6.0 malformed"),
    (B.CONTENT, Stage.END, "552 5.2.3 too long"),
    (B.CONTENT, Stage.DATA, "554 5.5.1 no valid recipients"),
    (B.ACCOUNT, Stage.END, "550 5.4.5 Daily user sending limit exceeded"),  # Gmail
    (B.ACCOUNT, Stage.END, "550 5.4.6 Unusual sending activity detected"),  # Zoho
    (B.HOST, Stage.END, "554 5.7.1 192.0.2.1 is listed at zen.spamhaus.org"),
    (B.AUTHENTICATION, Stage.END, "550 5.7.26 unauthenticated mail"),  # RFC 7372 §3.3
    (B.UNKNOWN_MAILBOX, Stage.END, "550 5.1.1 no such user"),
    (B.FULL_MAILBOX, Stage.END, "552 5.2.2 mailbox full"),
    (B.TEMPORARY, Stage.END, "451 4.7.1 try again"),
    (B.BUSY_MAILBOX, Stage.END, "452 4.2.2 mailbox full"),
]
REPORTS = [
    # A Diagnostic-Code of a bounce mail (RFC 3464 §2.3.6), or what a service says of a bounce.
    (B.UNKNOWN_MAILBOX, "smtp; 550-5.1.1 <a@x.test>: Recipient address rejected: User unknown"),
    (B.UNKNOWN_MAILBOX, "smtp; 550 5.1.10 Recipient not found by SMTP address lookup"),
    (B.UNKNOWN_MAILBOX, "user unknown"),
    (B.FULL_MAILBOX, "smtp; 452 4.2.2 The recipient's inbox is out of storage space"),
    (B.TEMPORARY, "X-Postfix; connect to mx.x.test[192.0.2.1]:25: Connection timed out 4.4.1"),
    (B.TEMPORARY, "4.4.7 Message expired"),
    (B.TEMPORARY, "smtp; 450 4.1.1 user unknown"),  # 4.x is never a dead address
    (B.HOST, "smtp; 550 5.7.1 Blocked - see https://www.spamhaus.org/"),
    (B.SENDER, "smtp; 550 5.1.0 Sender denied"),
    (B.ACCOUNT, "smtp; 550 5.4.5 Daily user sending limit exceeded"),
    (B.BUSY_MAILBOX, "550-5.2.1 receiving mail at a rate that prevents additional messages"),
    (B.POLICY, "550 5.7.1"),
    (B.REFUSED_RECIPIENT, "5.4.14 Hop count exceeded - possible mail loop"),
    (B.ACCOUNT, "smtp; 421 4.7.0 unusual rate of unsolicited mail originating from your IP"),
    (None, "smtp; 550 5.5.0 Requested action not taken: mailbox unavailable"),  # the service knows
    (None, "550 <a@x.test> unavailable"),
    (None, "550"),
    (None, ""),
    (None, "5.1.0 address"),
    (None, "delivered to 5.1.1.1 on 5501"),  # an IP address and a number are no codes
]


@pytest.mark.parametrize(("expected", "reply"), RCPT)
def test_class_of_a_refused_recipient(expected: B, reply: str) -> None:
    assert bounces.of_reply(Stage.RCPT, int(reply[:3]), reply[4:]) is expected


@pytest.mark.parametrize(("expected", "stage", "reply"), OTHERS)
def test_class_depends_on_the_stage(expected: B, stage: Stage, reply: str) -> None:
    assert bounces.of_reply(stage, int(reply[:3]), reply[4:]) is expected


@pytest.mark.parametrize(("expected", "text"), REPORTS)
def test_class_of_a_report(expected: B | None, text: str) -> None:
    assert bounces.of_report(text) is expected


@pytest.mark.parametrize(
    ("text", "hard", "soft", "expected"),
    [
        ("", True, False, ("bounced", False)),
        ("550 5.1.1 no such user", True, False, ("bounced", False)),
        ("550 5.7.1 no", True, False, ("failed", False)),
        ("550 5.7.1 Blocked, see spamhaus.org", True, False, ("failed", False)),
        ("550 5.4.5 Daily user sending limit exceeded", True, False, ("failed", False)),
        ("552 5.2.2 mailbox full", True, False, ("failed", True)),
        ("550 5.4.1 Recipient address rejected: Access denied", True, False, ("failed", True)),
        ("451 4.4.1 no answer", True, False, ("failed", True)),
        ("", False, True, ("failed", True)),
        ("550 5.1.1 no such user", False, True, ("failed", True)),  # the service tries it again
        ("550 5.7.1 Blocked, see spamhaus.org", False, True, ("failed", False)),
        ("", False, False, ("failed", False)),
    ],
)
def test_server_text_overrides_the_bounce_type_of_the_service(
    text: str, hard: bool, soft: bool, expected: tuple[str, bool]
) -> None:
    assert bounces.of_bounce(text, hard=hard, soft=soft) == expected


def test_only_unknown_and_disabled_mailboxes_are_suppressed() -> None:
    assert {each for each in B if each.suppresses} == {B.UNKNOWN_MAILBOX, B.DISABLED_MAILBOX}
    assert {each for each in B if each.meaning is DEAD} == {each for each in B if each.suppresses}


def test_table_has_sixty_replies_of_the_field() -> None:
    assert len(RCPT) + len(OTHERS) + len(REPORTS) >= 60
    assert {each for each, _ in RCPT} | {each for each, *_ in OTHERS} == set(B)
