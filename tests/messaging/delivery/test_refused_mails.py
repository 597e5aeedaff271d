"""What real mail servers refuse: which address is suppressed, which account is next."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import NamedTuple

import orjson
import pytest

from messaging.delivery.accounts import CircuitState, circuits
from messaging.models import Attempt, Delivery, ProviderAccount, Suppression
from rme.core.cache import TtlCache
from rme.transport import AddressPolicy, Transport
from tests import factories
from tests.fakes.smtp import SmtpServer
from tests.rest import events, message, work

pytestmark = pytest.mark.django_db


class MailAccount(NamedTuple):
    """An SMTP account and its server."""

    row: ProviderAccount
    server: SmtpServer

    @property
    def circuit(self) -> CircuitState:
        return circuits.read([self.row.pk])[self.row.pk].state


@pytest.fixture
def mail_account(org, settings) -> Iterator[Callable[..., MailAccount]]:
    """Give a function that adds an account whose server answers as a script says."""
    settings.OUTBOUND_OPEN_HOSTS = ["127.0.0.1"]
    settings.BACKOFF_SECONDS = 900  # no second try within a test
    with ExitStack() as servers:

        def add(script: Mapping[str, str], **fields: object) -> MailAccount:
            server = servers.enter_context(SmtpServer(script))
            credentials = {"host": "127.0.0.1", "port": server.port, "security": "NONE"}
            number = ProviderAccount.objects.count() + 1
            row = ProviderAccount.objects.create(
                organization=org, name=f"mail-{number}", kind="smtp", channel="EMAIL",
                priority=number, credentials=orjson.dumps(credentials).decode(), **fields,
            )  # fmt: skip
            TtlCache.clear_all()
            return MailAccount(row, server)

        yield add


def send(api, person, **fields: object) -> str:
    transport = Transport(AddressPolicy(["127.0.0.1"]))
    answer = api.send(message(person, **fields))
    assert answer.status_code == 202, answer.content
    work(transport)
    transport.close()
    return str(answer.json()["messageId"])


def suppressed() -> list[tuple[str, str]]:
    return list(Suppression.objects.values_list("address", "reason"))


SENDING_SIDE = [
    ("RCPT", "550 Blocked - see https://www.spamhaus.org/query/ip/192.0.2.1"),
    ("RCPT", "550 Domain x.test has exceeded the max emails per hour (100/100) allowed"),
    ("RCPT", "550 Administrative prohibition"),
    ("RCPT", "550-5.2.1 The user is receiving mail at a rate that\n550 5.2.1 prevents delivery"),
    ("RCPT", "550 5.1.0 Sender denied"),
    ("RCPT", "550 SPF check failed"),
    ("RCPT", "550 Please turn on SMTP Authentication in your mail client"),
    ("RCPT", "553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)"),
    ("RCPT", "550 5.1.1 unsolicited mail: 192.0.2.1 is on our blocklist"),
    ("END", "550 5.4.5 Daily user sending limit exceeded"),
    ("END", "550 5.4.6 Unusual sending activity detected"),
    ("END", "554 5.7.1 192.0.2.1 is listed at zen.spamhaus.org"),
    ("MAIL", "550 5.4.5 Daily user sending limit exceeded"),
    ("CONNECT", "554 5.7.1 Blocked - see https://www.spamhaus.org/"),
]


@pytest.mark.parametrize(("stage", "reply"), SENDING_SIDE)
def test_mail_refused_for_its_sender_goes_to_the_next_account(api, org, mail_account, stage, reply):
    mail_account({"GREETING" if stage == "CONNECT" else stage: reply})
    second = mail_account({})
    message_id = send(api, factories.contact(org))
    assert [mail.recipient.strip("<>") for mail in second.server.mails] == [
        Delivery.objects.get().address
    ]
    assert (Delivery.objects.get().status, suppressed()) == ("SENT", [])
    assert events(message_id) == ["accepted", "failover", "sent"]


@pytest.mark.parametrize(("stage", "reply"), SENDING_SIDE)
def test_only_account_tries_again_later(api, org, mail_account, stage, reply):
    mail_account({"GREETING" if stage == "CONNECT" else stage: reply})
    message_id = send(api, factories.contact(org))
    delivery = Delivery.objects.get()
    assert (delivery.status, delivery.waiting, suppressed()) == ("ACCEPTED", "PROVIDER", [])
    assert events(message_id) == ["accepted", "deferred"]


@pytest.mark.parametrize(
    "reply",
    [
        "550 5.1.1 The email account that you tried to reach does not exist",
        "550 No Such User Here",
        "550 5.2.1 The email account that you tried to reach is disabled",
        "556 5.1.10 Recipient address has null MX",
    ],
)
def test_unknown_and_disabled_mailboxes_are_suppressed(api, org, mail_account, reply):
    mail_account({"RCPT": reply})
    second = mail_account({})
    person = factories.contact(org)
    message_id = send(api, person)
    assert (Delivery.objects.get().status, second.server.mails) == ("FAILED", [])
    assert suppressed() == [(person.email, "HARD_BOUNCE")]
    assert events(message_id) == ["accepted", "bounced", "failed"]


def test_unclear_refusal_of_a_recipient_ends_with_the_last_account(api, org, mail_account):
    unclear = {"RCPT": "550 Requested action not taken: mailbox unavailable"}
    accounts = [mail_account(unclear), mail_account(unclear)]
    message_id = send(api, factories.contact(org))
    assert (Delivery.objects.get().status, suppressed()) == ("FAILED", [])
    assert events(message_id) == ["accepted", "failover", "failed"]
    assert [account.circuit for account in accounts] == [CircuitState.CLOSED] * 2


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ({"MAIL": "553 malformed address"}, "FAILED"),
        ({"MAIL": "550 5.7.1 you may not send as this"}, "ACCEPTED"),
        ({"RCPT": "550 5.1.0 Sender denied"}, "ACCEPTED"),
        ({"RCPT": "550 Administrative prohibition"}, "ACCEPTED"),
        ({"RCPT": "550 mailbox unavailable"}, "FAILED"),
        ({"RCPT": "450 4.2.0 Greylisted"}, "ACCEPTED"),
        ({"END": "550 5.7.26 DMARC"}, "ACCEPTED"),
    ],
)
def test_failures_of_a_message_leave_the_circuit_closed(api, org, mail_account, script, status):
    account = mail_account(script)
    for person in factories.contacts(org, 25):  # more than open a circuit by their share
        api.send(message(person))
    transport = Transport(AddressPolicy(["127.0.0.1"]))
    work(transport)
    transport.close()
    assert set(Delivery.objects.values_list("status", flat=True)) == {status}
    assert Attempt.objects.count() == 25
    assert account.circuit is CircuitState.CLOSED


@pytest.mark.parametrize(
    "script",
    [
        {"RCPT": "550 Blocked - see https://www.spamhaus.org/"},
        {"END": "550 5.4.5 Daily user sending limit exceeded"},
        {"MAIL": "530 5.7.0 log in first"},
    ],
)
def test_failures_of_an_account_open_its_circuit(api, org, mail_account, script):
    account = mail_account(script)
    for person in factories.contacts(org, 25):
        api.send(message(person))
    transport = Transport(AddressPolicy(["127.0.0.1"]))
    work(transport)
    transport.close()
    assert account.circuit is CircuitState.OPEN
