"""Web Push encryption and signatures: what a browser and a push service read by the standards."""

import random

import orjson
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec

from push.base64url import decode
from push.providers.webpush import PLAINTEXT_LIMIT, parse_subscription
from rme.core.outcomes import Accepted, Fault, Gone, Rejected
from tests.fakes.webpush import decrypt, push_service
from tests.push.providers.attempts import dispatch, provider
from tests.push.subscriptions import Browser

POINT = orjson.loads(Browser().text)["keys"]["p256dh"]
COMPRESSED = "AmsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKW"
"""A compressed point of P-256 (33 bytes)."""
UNWRITABLE = Rejected("the provider cannot write this message", Fault.CONTENT)


@pytest.mark.promise("push-sending-23")
def test_the_browser_of_these_tests_reads_the_example_of_rfc_8291():
    body = decode("DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml")
    body += decode("mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT")
    body += decode("pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
    key = decode("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94")
    browser = Browser(
        private=ec.derive_private_key(int.from_bytes(key), ec.SECP256R1()),
        auth=decode("BTBZMqHH6r4Tts7J_aSIgg"),
    )
    assert decrypt(body, browser) == b"When I grow up, I want to be a watermelon"


def test_no_salt_and_no_key_is_used_twice():
    subscription = parse_subscription(Browser().text)
    one, other = subscription.encrypt(b"Hi"), subscription.encrypt(b"Hi")
    assert one[:16] != other[:16]
    assert one[21:86] != other[21:86]
    assert len(one) == len(other) == 86 + 2 + 1 + 16


@pytest.mark.parametrize("part", range(4))
def test_browser_decrypts_its_payload(part):
    """10,000 payloads in four parts, each for a browser of its own: any size, any bytes."""
    chance = random.Random(part)
    for number in range(2500):
        size = chance.choice([1, 2, PLAINTEXT_LIMIT, chance.randrange(1, PLAINTEXT_LIMIT)])
        text, secret = chance.randbytes(size), chance.randbytes(16)
        browser = Browser(auth=secret)
        body = parse_subscription(browser.text).encrypt(text)
        assert decrypt(body, browser) == text, (part, number, size)


def test_another_browser_cannot_read_it():
    body = parse_subscription(Browser().text).encrypt(b"Hi")
    with pytest.raises(InvalidTag):
        decrypt(body, Browser())


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        (None, Gone("the subscription has no keys")),
        ({"p256dh": "AAAA"}, UNWRITABLE),
        ({"p256dh": "A" * 87, "auth": "A" * 22}, UNWRITABLE),
        ({"p256dh": 7, "auth": []}, UNWRITABLE),
        ({"p256dh": POINT}, UNWRITABLE),
        ({"p256dh": POINT, "auth": "AAAA"}, UNWRITABLE),
        ({"p256dh": COMPRESSED, "auth": "A" * 22}, UNWRITABLE),
    ],
)
def test_invalid_keys_fail_one_push_alone(transport, keys, found):
    with push_service() as service:
        account, good = provider("webpush", service.settings()), service.browser()
        broken = orjson.dumps({"endpoint": good.endpoint, "keys": keys}).decode()
        window = [
            dispatch(number, platform="WEB", token=token)
            for number, token in enumerate([broken, good.text], 1)
        ]
        assert account.send(window, transport) == [found, Accepted("/m/1")]
