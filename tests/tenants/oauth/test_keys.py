"""What may be stored as an application's public key, and how several serve at once."""

import json
from base64 import b64encode
from itertools import count

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from rme.tenants.models import ApplicationKey, public_keys
from tests.any_value import EFFORT, JSON
from tests.tenants.conftest import KEY, private_pem, public_pem

PRIVATE = "This is a private key: keep it, and store the public half here."
UNREADABLE = "This isn't a PEM public key, PEM certificate, JWK or JWKS."
UNUSABLE = "The key must be RSA of 2048 bits or more, EC on P-256, or Ed25519."
NO_TYPE = "The key type must be RSA, EC or OKP."
NONE_LEFT = "There is no usable signature key in this set."


def jwk(key=KEY, **more):
    return {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())), **more}


def small_rsa():
    return rsa.generate_private_key(public_exponent=65537, key_size=1024)


@pytest.mark.parametrize(
    ("material", "text"),
    [
        ("", UNREADABLE),
        ("nonsense", UNREADABLE),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", UNREADABLE),
        ("-----BEGIN PUBLIC KEY-----\n\xff\n-----END PUBLIC KEY-----", UNREADABLE),
        (private_pem(KEY), PRIVATE),
        (public_pem(small_rsa()), UNUSABLE),
        (public_pem(ec.generate_private_key(ec.SECP384R1())), UNUSABLE),
        ("{", "This is not valid JSON."),
        ("{}", NO_TYPE),
        ('{"kty": "oct", "k": "c2VjcmV0"}', NO_TYPE),
        ('{"kty": ["RSA"]}', NO_TYPE),
        ('{"kty": "RSA", "n": 5, "e": {}}', "This key cannot be read."),
        ('{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}', "This key cannot be read."),
        (jwt.algorithms.RSAAlgorithm.to_jwk(KEY), PRIVATE),
        (json.dumps(jwk(use="enc")), "This key is not for signatures."),
        ('{"keys": []}', NONE_LEFT),
        ('{"keys": 5}', NONE_LEFT),
        ('{"keys": [5, {"kty": "oct"}]}', NONE_LEFT),
    ],
    ids=count(),  # keys are made anew in each process, and tests have the same names in all
)
def test_unusable_material_is_refused(material, text):
    with pytest.raises(ValueError) as raised:
        public_keys.load(material)
    assert str(raised.value) == text
    with pytest.raises(ValidationError) as refused:
        ApplicationKey(name="x", material=material).clean()
    assert refused.value.message_dict == {"material": [text]}


KINDS = (KEY, ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate())


def outcome(material):
    try:
        return public_keys.load(material)
    except ValueError as error:
        return str(error)


@EFFORT
@given(st.sampled_from(KINDS), st.integers(0), st.integers(0, 255), st.booleans())
def test_a_broken_pem_is_refused(key, place, byte, is_certificate):
    der = bytearray(key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    der[place % len(der)] = byte
    kind = "CERTIFICATE" if is_certificate else "PUBLIC KEY"
    text = f"-----BEGIN {kind}-----\n{b64encode(der).decode()}\n-----END {kind}-----\n"
    found = outcome(text)  # some bytes of a key make another key
    assert found in (UNREADABLE, UNUSABLE) or (not is_certificate and isinstance(found, list))


@EFFORT
@given(st.sampled_from(KINDS), st.integers(0), JSON)
def test_a_broken_jwk_is_refused(key, place, value):
    algorithm = next(
        a for a, kind in public_keys.ALGORITHMS.items() if isinstance(key.public_key(), kind)
    )
    member = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
    name = sorted(member)[place % len(member)]
    found = outcome(json.dumps({**member, name: value}))
    required = name in {"kty", "crv", "n", "e", "x", "y"} and not isinstance(value, str)
    assert isinstance(found, str) if required else found


def test_unusable_keys_of_a_set_are_skipped():
    members = [{"kty": "oct", "k": "AA"}, jwk(kid="a"), jwk(use="enc"), jwk(kid=5)]
    loaded = public_keys.load(json.dumps({"keys": members}))
    assert [kid for kid, _ in loaded] == ["a", None]


def test_decoy_has_the_type_of_its_algorithm():
    for algorithm, kind in public_keys.ALGORITHMS.items():
        assert isinstance(public_keys.decoy(algorithm), kind)


def set_of(**by_kid):
    return json.dumps({"keys": [jwk(key, kid=kid) for kid, key in by_kid.items()]})


@pytest.mark.promise("tokens-6")
@pytest.mark.django_db
def test_several_keys_serve_and_kid_picks_among_them(program):
    second = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    ApplicationKey.objects.all().delete()
    for material in (set_of(old=KEY, new=second), public_pem(ed25519_key := ed25519_new())):
        ApplicationKey.objects.create(application=program.application, name="k", material=material)

    def status(kid, key, algorithm="RS256"):
        headers = {"kid": kid} if kid else None
        assertion = program.assertion(
            key=key, algorithm=algorithm, headers=headers, jti=f"{kid}{id(key)}"
        )
        return program.exchange(assertion).status_code

    assert status(None, KEY) == status(None, second) == 200
    assert status("old", KEY) == status("new", second) == 200
    assert status("old", second) == status("new", KEY) == status("none", KEY) == 400
    assert status("any", ed25519_key, "EdDSA") == 200  # a PEM key has no name to differ from


def ed25519_new():
    return ed25519.Ed25519PrivateKey.generate()


@pytest.mark.django_db
def test_a_broken_key_does_not_stop_the_others(program):
    ApplicationKey.objects.create(application=program.application, name="a", material="broken")
    assert program.exchange(program.assertion()).status_code == 200


@pytest.mark.django_db
def test_another_applications_key_does_not_serve(program):
    ApplicationKey.objects.all().delete()
    assert program.exchange(program.assertion()).json() == {
        "error": "invalid_grant",
        "error_description": "the signature is not one of the application's keys'",
    }
