"""What email services report: which calls are authentic, and what they say."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from messaging.providers.anymail import Anymail, AnymailSettings
from messaging.providers.anymail.services import ServiceName
from rme.core import ids
from rme.core.outcomes import OptOut
from rme.core.provider import CallbackRequest, DeliveryReceipt, InboundSms, UnknownCode
from tests.fakes import NO_TRANSPORT, mail_services
from tests.fakes.mail_events import ARRAYS, MAKERS, SAYS, WORDS
from tests.fakes.mail_services import BASIC, REPORTING
from tests.fakes.providers import Call

URL = "https://rme.example/hooks/one"
SIGNING: list[ServiceName] = [name for name in REPORTING if name not in BASIC]


def account(service: ServiceName, **given: str) -> Anymail:
    return Anymail(AnymailSettings.model_validate({**mail_services.settings(service), **given}))


def arrived(call: Call, later: timedelta = timedelta(), url: str = URL) -> CallbackRequest:
    moment = datetime.now(UTC) + later
    return CallbackRequest(url, call.method, call.query, call.headers, call.body, moment)


def report(service: ServiceName, word: str = "delivered", attempt: UUID | None = None) -> Call:
    return mail_services.report(service, URL, attempt or ids.new_id(), word)


@pytest.mark.parametrize("service", REPORTING)
def test_report_is_authentic_only_as_signed(service: ServiceName) -> None:
    call = report(service)
    own = account(service)
    assert own.is_authentic(arrived(call), NO_TRANSPORT)
    kept = {n: v for n, v in call.headers.items() if n in ("content-type", "user-agent")}
    if service not in ("mailgun", "unisender_go"):  # these sign in the body
        assert not own.is_authentic(arrived(call._replace(headers=kept)), NO_TRANSPORT)
    assert not own.is_authentic(arrived(Call("POST", "", kept, b"{}")), NO_TRANSPORT)
    assert not own.is_authentic(arrived(call._replace(method="GET")), NO_TRANSPORT)


@pytest.mark.parametrize("service", sorted(set(SIGNING) - {"mailgun"}))
def test_a_changed_body_is_not_authentic(service: ServiceName) -> None:
    attempt, other = ids.new_id(), ids.new_id()
    call = report(service, attempt=attempt)
    changed = call.body.replace(str(attempt).encode(), str(other).encode())
    assert changed != call.body
    assert not account(service).is_authentic(arrived(call._replace(body=changed)), NO_TRANSPORT)


@pytest.mark.parametrize("service", REPORTING)
def test_signature_with_another_secret_is_not_authentic(service: ServiceName) -> None:
    secrets = {
        "postal": mail_services.public(mail_services.rsa.generate_private_key(65537, 2048)),
        "sendgrid": mail_services.public(
            mail_services.ec.generate_private_key(mail_services.ec.SECP256R1())
        ),
        "resend": "whsec_" + base64.b64encode(b"another" * 5).decode(),
        **dict.fromkeys(BASIC, "rme:" + "another" * 5),
    }
    given = {"callback_secret": secrets.get(service, "another" * 5)}
    if service == "unisender_go":
        given = {"api_key": "another-key"}
    assert not account(service, **given).is_authentic(arrived(report(service)), NO_TRANSPORT)


@pytest.mark.parametrize("service", sorted(set(REPORTING) - {"unisender_go"}))
def test_without_a_secret_nothing_is_authentic(service: ServiceName) -> None:
    own = account(service, callback_secret="")
    assert not own.is_authentic(arrived(report(service)), NO_TRANSPORT)
    assert not own.is_authentic(
        arrived(Call("POST", "", {"authorization": "Basic Og=="})), NO_TRANSPORT
    )


def test_service_without_reports_has_no_authentic_call() -> None:
    assert not account("scaleway").is_authentic(arrived(report("brevo")), NO_TRANSPORT)
    assert account("scaleway").read_callback(arrived(report("brevo"))) == []


@pytest.mark.parametrize("service", ["mailgun", "resend", "sendgrid"])
def test_old_signed_call_is_rejected_as_a_replay(service: ServiceName) -> None:
    call, own = report(service), account(service)
    assert own.is_authentic(arrived(call, timedelta(hours=25)), NO_TRANSPORT)
    assert not own.is_authentic(arrived(call, timedelta(hours=27)), NO_TRANSPORT)
    assert not own.is_authentic(arrived(call, -timedelta(minutes=6)), NO_TRANSPORT)


@pytest.mark.parametrize("service", sorted(set(REPORTING) - {"postal"}))
def test_old_event_is_ignored(service: ServiceName) -> None:
    call = report(service, SAYS.get(service, WORDS)[1])
    assert account(service).read_callback(arrived(call, timedelta(days=6)))
    assert account(service).read_callback(arrived(call, timedelta(days=8))) == []


def test_mandrill_signature_covers_the_url_of_the_account() -> None:
    call = report("mandrill", "hard")
    assert not account("mandrill").is_authentic(
        arrived(call, url="https://rme.example/hooks/two"), NO_TRANSPORT
    )


def expected(service: ServiceName, word: str) -> tuple[str, bool]:
    """Return the type that a word becomes, and whether it is a soft bounce."""
    return {"hard": ("bounced", False), "soft": ("failed", True)}.get(word, (word, False))


@pytest.mark.parametrize(
    ("service", "word"),
    [(service, word) for service in REPORTING for word in SAYS.get(service, WORDS)],
)
def test_report_is_read_as_a_receipt_of_its_attempt(service: ServiceName, word: str) -> None:
    attempt = ids.new_id()
    (receipt,) = account(service).read_callback(arrived(report(service, word, attempt)))
    assert isinstance(receipt, DeliveryReceipt)
    assert (receipt.attempt_id, (receipt.type, receipt.soft)) == (attempt, expected(service, word))
    assert "x.test" not in (receipt.reason or "")
    assert receipt.machine is False


@pytest.mark.parametrize("service", REPORTING)
def test_stored_part_of_a_call_can_be_read(service: ServiceName) -> None:
    word = SAYS.get(service, WORDS)[0]
    call = report(service, word)
    kept = {n: v for n, v in call.headers.items() if n in ("content-type", "user-agent")}
    own = account(service)
    assert len(own.read_callback(arrived(call._replace(headers=kept)))) == 1


def test_reason_quotes_the_service() -> None:
    attempt = ids.new_id()
    (receipt,) = account("brevo").read_callback(arrived(report("brevo", "hard", attempt)))
    assert receipt == DeliveryReceipt(attempt, "bounced", "bounced 550 … unknown")


@pytest.mark.parametrize("service", ARRAYS)
def test_malformed_event_does_not_lose_the_others(service: ServiceName) -> None:
    attempts = [ids.new_id(), ids.new_id()]
    word = SAYS.get(service, WORDS)[1]
    good = [MAKERS[service](str(each), word) for each in attempts]
    call = mail_services.signed(service, URL, [good[0], good[1]])
    assert [r.attempt_id for r in account(service).read_callback(arrived(call))] == attempts
    if service == "mandrill":  # its array is inside a form
        return
    odd: list[Any] = [good[0], 7, {}, {"event": []}, {"msys": 3}, good[1]]
    call = mail_services.signed(service, URL, odd)
    assert account(service).is_authentic(arrived(call), NO_TRANSPORT)
    assert [r.attempt_id for r in account(service).read_callback(arrived(call))] == attempts


@pytest.mark.parametrize(
    ("service", "change", "kind"),
    [
        ("brevo", {"event": "proxy_open"}, True),
        ("brevo", {"event": "unique_proxy_open"}, True),
        ("brevo", {"event": "opened"}, False),
        ("mailgun", {"client-info": {"bot": "apple", "user-agent": "Mozilla/5.0"}}, True),
        ("mailgun", {"client-info": {"bot": "", "user-agent": "Mozilla/5.0 (X11) x"}}, False),
        ("sendgrid", {"sg_machine_open": True}, True),
        ("sendgrid", {"sg_machine_open": False}, False),
        ("sendgrid", {"useragent": "x (via ggpht.com GoogleImageProxy)"}, True),
        ("sparkpost", {"is_prefetched": True}, True),
        ("sparkpost", {"is_prefetched": False}, False),
        ("postmark", {"UserAgent": "YahooMailProxy; https://help.yahoo.com"}, True),
        ("mailjet", {"agent": "Mozilla/5.0"}, True),
    ],
)
def test_an_open_by_a_machine_is_recognized(
    service: ServiceName, change: dict[str, Any], kind: bool
) -> None:
    event = MAKERS[service](str(ids.new_id()), "open")
    inner = {
        "mailgun": lambda: event["event-data"],
        "sparkpost": lambda: event["msys"]["track_event"],
    }.get(service, lambda: event)()
    inner.update(change)
    payload = [event] if service in ARRAYS else event
    (receipt,) = account(service).read_callback(
        arrived(mail_services.signed(service, URL, payload))
    )
    assert isinstance(receipt, DeliveryReceipt)
    assert (receipt.type, receipt.machine) == ("open", kind)


@pytest.mark.parametrize(
    ("service", "change", "outcome"),
    [
        ("mailgun", {"reason": "suppress-bounce"}, ("bounced", False)),
        ("mailgun", {"reason": "old"}, ("failed", True)),
        ("mailgun", {"reason": "espblock"}, ("failed", False)),
        ("sendgrid", {"type": "blocked", "status": "5.7.1"}, ("failed", False)),
        ("sendgrid", {"type": "bounce", "status": ""}, ("bounced", False)),
        ("sendgrid", {"event": "dropped", "reason": "Bounced Address"}, ("bounced", False)),
        ("sendgrid", {"event": "dropped", "type": "Spam"}, ("failed", False)),
        ("mailgun", {"delivery-status": {"code": 550, "bounce-type": "soft"}}, ("failed", True)),
        (
            "mailgun",
            {"delivery-status": {"code": 550, "enhanced-code": "5.7.1", "bounce-type": "hard"}},
            ("failed", False),
        ),
        (
            "mailgun",
            {"delivery-status": {"code": 550, "message": "Blocked - see spamhaus.org"}},
            ("failed", False),
        ),
        ("sendgrid", {"type": "bounce", "status": "5.7.1"}, ("failed", False)),
        ("sendgrid", {"status": "", "reason": "550 SPF check failed"}, ("failed", False)),
        (
            "sendgrid",
            {"status": "5.4.5", "reason": "550 5.4.5 Daily user sending limit exceeded"},
            ("failed", False),
        ),
        ("brevo", {"reason": "550 5.1.0 Sender denied"}, ("failed", False)),
        ("brevo", {"reason": "550 Administrative prohibition"}, ("failed", False)),
        ("mandrill", {"msg": {"diag": "smtp;550 5.7.1 Relay access denied"}}, ("failed", False)),
        ("mandrill", {"msg": {"diag": "smtp;550 5.1.1 no such user"}}, ("bounced", False)),
        ("postmark", {"Details": "smtp;550 5.2.1 receiving mail at a rate"}, ("failed", True)),
        ("mailjet", {"error": "sender blocked"}, ("failed", False)),
        ("mailjet", {"error": "quota exceeded"}, ("failed", True)),
        ("mailjet", {"event": "blocked", "error": "relay/access denied"}, ("failed", False)),
        (
            "sparkpost",
            {"raw_reason": "550 5.7.1 blocked using zen.spamhaus.org"},
            ("failed", False),
        ),
        ("sparkpost", {"bounce_class": "23"}, ("failed", False)),
        ("mailtrap", {"response": "550 5.7.26 unauthenticated sender"}, ("failed", False)),
        (
            "resend",
            {"bounce": {"type": "Permanent", "diagnosticCode": ["smtp; 550 5.7.1 no"]}},
            ("failed", False),
        ),
        (
            "unisender_go",
            {
                "delivery_info": {
                    "delivery_status": "err_user_unknown",
                    "destination_response": "550 5.7.1 Blocked, see spamhaus.org",
                }
            },
            ("failed", False),
        ),
        (
            "mailersend",
            {"morph": {"object": "recipient_bounce", "reason": "550 5.1.0 Sender denied"}},
            ("failed", False),
        ),
        ("sparkpost", {"bounce_class": "50"}, ("failed", False)),
        ("sparkpost", {"bounce_class": "30"}, ("bounced", False)),
        ("postmark", {"Type": "BadEmailAddress"}, ("bounced", False)),
        ("postmark", {"Type": "Blocked"}, ("failed", False)),
    ],
)
def test_bounces_of_a_dead_address_differ_from_others(
    service: ServiceName, change: dict[str, Any], outcome: tuple[str, bool]
) -> None:
    receipt = changed_report(service, "hard", change)
    assert isinstance(receipt, DeliveryReceipt)
    assert (receipt.type, receipt.soft, receipt.opt_out) == (*outcome, None)


def changed_report(
    service: ServiceName, word: str, change: dict[str, Any]
) -> DeliveryReceipt | UnknownCode | InboundSms | None:
    """Return what a service's report says, with other values in it."""
    event = MAKERS[service](str(ids.new_id()), word)
    inner = {
        "mailgun": lambda: event["event-data"],
        "sparkpost": lambda: event["msys"]["message_event"],
        "mailtrap": lambda: event["events"][0],
        "mailersend": lambda: event["data"],
        "resend": lambda: event["data"],
        "unisender_go": lambda: event["events_by_user"][0]["events"][0]["event_data"],
    }.get(service, lambda: event)()
    if change.get("event") == "dropped":
        inner.pop("type")
    for name, value in change.items():
        nested = name == "msg" and isinstance(value, dict)
        inner[name] = {**inner[name], **value} if nested else value
    payload = [event] if service in ARRAYS else event
    found = account(service).read_callback(arrived(mail_services.signed(service, URL, payload)))
    return next(iter(found), None)


@pytest.mark.parametrize(
    ("service", "change", "opt_out"),
    [
        ("mailgun", {"reason": "suppress-unsubscribe"}, OptOut.UNSUBSCRIBED),
        ("mailgun", {"reason": "suppress-complaint"}, OptOut.COMPLAINT),
        ("sendgrid", {"event": "dropped", "reason": "Unsubscribed Address"}, OptOut.UNSUBSCRIBED),
        ("sendgrid", {"event": "dropped", "reason": "Spam Reporting Address"}, OptOut.COMPLAINT),
        ("mandrill", {"event": "reject", "reject": {"reason": "unsub"}}, OptOut.UNSUBSCRIBED),
        ("mandrill", {"event": "reject", "reject": {"reason": "spam"}}, OptOut.COMPLAINT),
        ("mailjet", {"event": "blocked", "error": "spam reporter"}, OptOut.COMPLAINT),
        ("mailersend", {"morph": {"object": "recipient_unsubscribe"}}, OptOut.UNSUBSCRIBED),
        ("mailersend", {"morph": {"object": "spam_complaint"}}, OptOut.COMPLAINT),
        (
            "resend",
            {"bounce": {"type": "Permanent", "subType": "UnsubscribedRecipient"}},
            OptOut.UNSUBSCRIBED,
        ),
        (
            "unisender_go",
            {"delivery_info": {"delivery_status": "err_unsubscribed"}},
            OptOut.UNSUBSCRIBED,
        ),
    ],
)
def test_opt_outs_known_to_the_service_are_read(
    service: ServiceName, change: dict[str, Any], opt_out: OptOut
) -> None:
    receipt = changed_report(service, "hard", change)
    assert isinstance(receipt, DeliveryReceipt)
    assert (receipt.type, receipt.soft, receipt.opt_out) == ("failed", False, opt_out)


@pytest.mark.parametrize("kind", ["email.suppressed", "email.failed"])
def test_mail_not_sent_by_resend_is_failed(kind: str) -> None:
    attempt = ids.new_id()
    event = {**MAKERS["resend"](str(attempt), "open"), "type": kind}
    call = mail_services.signed("resend", URL, event)
    assert account("resend").read_callback(arrived(call)) == [DeliveryReceipt(attempt, "failed")]


def test_postal_is_read_by_the_words_of_the_server() -> None:
    receipt = changed_report("postal", "soft", {})
    assert isinstance(receipt, DeliveryReceipt)
    assert (receipt.type, receipt.soft) == ("failed", True)


@pytest.mark.parametrize(("feedback", "counts"), [("abuse", True), ("not-spam", False)])
def test_feedback_other_than_a_complaint_is_ignored(feedback: str, counts: bool) -> None:
    assert bool(changed_report("sparkpost", "complained", {"fbtype": feedback})) is counts


def test_an_unknown_event_is_an_unknown_code() -> None:
    event = MAKERS["brevo"](str(ids.new_id()), "abducted")
    call = mail_services.signed("brevo", URL, event)
    assert account("brevo").is_authentic(arrived(call), NO_TRANSPORT)
    assert account("brevo").read_callback(arrived(call)) == [UnknownCode("brevo.unknown")]


@pytest.mark.parametrize("service", REPORTING)
@pytest.mark.parametrize("mark", ["", "7", "not-a-uuid", "x" * 300, "\x00"])
def test_report_of_a_foreign_message_is_ignored(service: ServiceName, mark: str) -> None:
    call = mail_services.report(service, URL, mark, SAYS.get(service, WORDS)[0])
    assert account(service).read_callback(arrived(call)) == []


JUNK = [
    b"",
    b"[]",
    b"{}",
    b"null",
    b"7",
    b'"x"',
    b"\xff\xfe",
    b"[" * 5000,
    b'{"signature": 7, "event-data": []}',
    b'{"events": [7], "event": {}, "type": [], "msys": 1, "auth": 5}',
    b'[{"event": {}, "msys": {"a": 1, "b": 2}}, null, 7]',
    b'{"auth": "", "events_by_user": 7}',
    b'{"auth": "\\ud800", "data": {"email": 7, "type": {}}}',
    b"mandrill_events=7",
    b"mandrill_events=%5B%5D&mandrill_events=[{}]",
    b'{"event": "delivered", "ts_epoch": 1e300, "time": 1e300, "timestamp": "1e300"}',
    orjson.dumps({"event-data": {"event": "delivered", "timestamp": "NaN"}}),
]


@pytest.mark.parametrize("service", REPORTING)
@pytest.mark.parametrize("number", range(len(JUNK)))
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", "é"])
def test_malformed_call_is_neither_authentic_nor_read(
    service: ServiceName, number: int, kind: str
) -> None:
    marks = ("signature", "mailtrap-signature", "x-mandrill-signature", "x-postal-signature")
    marks += ("svix-id", "svix-timestamp", "svix-signature")
    marks += tuple(f"x-twilio-email-event-webhook-{name}" for name in ("signature", "timestamp"))
    for value in ("", "é", "AAAA", "9" * 40):
        headers = {"content-type": kind, "authorization": f"Basic {value}"}
        call = Call("POST", "", {**headers, **dict.fromkeys(marks, value)}, JUNK[number])
        assert not account(service).is_authentic(arrived(call), NO_TRANSPORT)
        assert account(service).read_callback(arrived(call)) == []
