"""What people write in several parts is read as one."""

import itertools
import threading
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from structlog.testing import capture_logs

from messaging.feedback import callbacks, listeners, sms_parts
from messaging.feedback.sms_parts import ReceivedSms
from messaging.models import Callback, InboundSmsParts, ProviderAccount, Suppression
from rme.core import ids
from rme.core.cache import TtlCache
from rme.core.db import clock
from rme.core.provider import CallbackRequest as Call
from rme.core.provider import InboundSms, SmsPart
from rme.transport.smpp import Address, ShortMessage
from rme.transport.smpp.pdu import Tag
from tests.service import wait_for
from tests.threads import waiting

pytestmark = pytest.mark.django_db
PERSON, OURS = Address("12025550123", 1, 1), Address("12025550100", 1, 1)
REFERENCE = 7


def headed(text, number, total, reference=REFERENCE):
    """Write a part with a header whose reference has eight bits."""
    header = bytes([5, 0, 3, reference, total, number])
    return ShortMessage(PERSON, OURS, header + text.encode(), 0x40)


def widely_headed(text, number, total, reference=REFERENCE):
    """Write a part whose reference has sixteen bits, behind an element of another kind."""
    header = bytes([10, 1, 2, 0, 0, 8, 4, 1, reference, total, number])
    return ShortMessage(PERSON, OURS, header + text.encode(), 0x40)


def numbered(text, number, total, reference=REFERENCE):
    """Write a part by parameters."""
    places = {
        Tag.SAR_MSG_REF_NUM: bytes([0, reference]),
        Tag.SAR_TOTAL_SEGMENTS: bytes([total]),
        Tag.SAR_SEGMENT_SEQNUM: bytes([number]),
    }
    return ShortMessage(PERSON, OURS, text.encode(), parameters=places)


WAYS = [headed, widely_headed, numbered]


@pytest.fixture
def account(org):
    made = ProviderAccount.objects.create(
        organization=org,
        name="smsc",
        kind="smpp",
        channel="SMS",
        credentials=orjson.dumps({"host": "127.0.0.1", "system_id": "esme"}).decode(),
    )
    TtlCache.clear_all()
    return made


def keep(account, *messages):
    """Keep messages as if they had come over an account's link."""
    whose = callbacks.find_account(account.public_id)
    assert whose is not None
    calls = [
        Call(whose.url, listeners.METHOD, ids.new_text_id(), {}, each.encode(), clock.now())
        for each in messages
    ]
    assert callbacks.store(whose, *calls)


def receive(account, *messages):
    """Receive messages and apply them; return the recipients of the replies."""
    keep(account, *messages)
    count, answers = callbacks.apply_due()
    assert count == len(messages)
    return [answer.sms.to for answer in answers]


@pytest.mark.promise("webhooks-15")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 2, 3, 3, 1)])
def test_parts_are_one_keyword_in_any_order_and_number(account, way, order):
    texts = {1: "S", 2: "TO", 3: "P"}
    answered = [receive(account, way(texts[number], number, 3)) for number in order]
    assert answered == [[]] * (len(order) - 1) + [["+12025550123"]]
    assert Suppression.objects.get().address == "+12025550123"


def test_parts_in_one_batch_are_one_keyword(account):
    assert receive(account, *(headed(text, at, 3) for at, text in enumerate("STOP"[:3], 1))) == []
    parts = [headed(text, at, 4, 8) for at, text in enumerate("STOP", 1)]
    assert receive(account, *reversed(parts)) == ["+12025550123"]


@pytest.mark.promise("webhooks-15")
@pytest.mark.parametrize("way", WAYS)
def test_a_keyword_in_one_part_does_not_count(account, way):
    receive(account, way("I never asked anybody to ", 1, 2))
    assert receive(account, way("STOP", 2, 2)) == []
    assert not Suppression.objects.exists()
    assert Callback.objects.filter(due_at=None, is_inbound_sms=True).count() == 2


def test_a_repeated_part_is_not_applied_again(account):
    parts = [headed("ST", 1, 2), headed("OP", 2, 2)]
    assert receive(account, *parts) == ["+12025550123"]
    Suppression.objects.all().delete()
    for part in parts:
        assert receive(account, part) == []
    assert not Suppression.objects.exists()


def test_reused_reference_starts_another_sms(account):
    receive(account, headed("I will ", 1, 2))
    assert receive(account, headed("ST", 1, 2), headed("OP", 2, 2)) == ["+12025550123"]
    assert receive(account, headed("STA", 1, 2), headed("RT", 2, 2)) == ["+12025550123"]
    assert not Suppression.objects.exists()


def test_parts_of_different_senders_are_not_joined(account):
    other = ShortMessage(Address("12025550124", 1, 1), OURS, b"\5\0\3\7\2\2OP", 0x40)
    assert receive(account, headed("ST", 1, 2), other, headed("OP", 2, 2, 8)) == []
    assert receive(account, headed("OP", 2, 3)) == []
    assert InboundSmsParts.objects.count() == 4


@pytest.mark.parametrize(
    "message",
    [
        headed("STOP", 1, 1),
        headed("STOP", 0, 2),
        headed("STOP", 3, 2),
        headed("STOP", 1, 0),
        ShortMessage(PERSON, OURS, b"\4\0\2\7\2STOP", 0x40),
        ShortMessage(PERSON, OURS, b"STOP", parameters={Tag.SAR_MSG_REF_NUM: b"\0\7"}),
    ],
    ids=["alone", "no first", "beyond", "of none", "short header", "half the parameters"],
)
def test_an_impossible_part_number_is_ignored(account, message):
    assert receive(account, message) == ["+12025550123"]


def test_the_longest_sms_is_joined(org):
    whole = []
    for number in range(1, 256):
        sms = InboundSms("+12025550123", "1", "é" * 67, part=SmsPart(65535, 255, number))
        whole += sms_parts.assemble([ReceivedSms(org.pk, 1, sms, datetime.now(UTC), "")])
    assert [received.sms for received in whole] == [InboundSms("+12025550123", "1", "é" * 67 * 255)]


def test_parts_in_any_order_give_the_same_text(org):
    parts = [SmsPart(1, 4, number) for number in range(1, 5)]
    orders = list(itertools.permutations(parts))
    assert len(orders) == 24
    for account_id, order in enumerate(orders):
        given = [
            ReceivedSms(org.pk, account_id, InboundSms("1", "2", f"{part.number} ", part=part),
                   datetime.now(UTC), "")
            for part in order
        ]  # fmt: skip
        found = [sms_parts.assemble([each]) for each in given]
        assert [len(each) for each in found] == [0, 0, 0, 1]
        assert found[-1][0].sms.text == "1 2 3 4 "


@pytest.mark.promise("webhooks-15")
def test_an_incomplete_sms_is_dropped_after_a_day_and_logged(account):
    receive(account, headed("ST", 1, 2, 1), headed("ST", 1, 2, 2), headed("OP", 2, 2, 2))
    receive(account, headed("ST", 1, 2, 3))
    old = InboundSmsParts.objects.count()
    InboundSmsParts.objects.update(received_at=datetime.now(UTC) - timedelta(hours=23))
    sms_parts.purge()
    assert InboundSmsParts.objects.count() == old == 3
    InboundSmsParts.objects.update(received_at=datetime.now(UTC) - timedelta(hours=25))
    with capture_logs() as logs:
        sms_parts.purge()
    assert logs == [
        {
            "event": "inbound_sms.incomplete",
            "log_level": "warning",
            "account_id": account.pk,
            "count": 2,
        }
    ]
    assert receive(account, headed("OP", 2, 2, 1)) == []


def test_statements_do_not_grow_with_the_parts(account):
    def statements(*messages):
        keep(account, *messages)
        with CaptureQueriesContext(connection) as seen:
            callbacks.apply_due()
        return len([query for query in seen if "SAVEPOINT" not in query["sql"]])

    whole = statements(ShortMessage(PERSON, OURS, b"Hello"))
    parts = [headed("Hello ", number, 9) for number in range(1, 10)]
    assert [statements(parts[0]), statements(*parts[1:])] == [whole + 2, whole + 2]


@pytest.mark.django_db(transaction=True)
def test_parts_applied_by_two_workers_are_one_keyword(account):
    answered = []

    def second() -> None:
        keep(account, headed("OP", 2, 2))
        answered.extend(callbacks.apply_due()[1])
        connections.close_all()

    keep(account, headed("ST", 1, 2))
    thread = threading.Thread(target=second)
    with transaction.atomic():
        assert callbacks.apply_due() == (1, [])
        thread.start()
        wait_for(lambda: waiting() == 1)
    thread.join(20)
    assert [answer.sms.to for answer in answered] == ["+12025550123"]
