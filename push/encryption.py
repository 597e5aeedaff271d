"""Encrypting for a browser (RFC 8291, the aes128gcm coding of RFC 8188), in one record."""

import os
import struct

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

RECORD_SIZE = 4096
_LAST_RECORD = b"\x02"
_CURVE = ec.SECP256R1()


def encrypt(
    plaintext: bytes,
    receiver: bytes,
    secret: bytes,
    *,
    sender: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
) -> bytes:
    """Encrypt for a subscription: `receiver` is its p256dh, `secret` its auth.

    `sender` and `salt` are new for each message; only the standard's example gives its own. Raises
    ValueError for a key that is none.
    """
    own = sender or ec.generate_private_key(_CURVE)
    salt = salt or os.urandom(16)
    public = own.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )
    shared = own.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, receiver))
    keying = _hkdf(secret, shared, b"WebPush: info\0" + receiver + public, 32)
    key = _hkdf(salt, keying, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _hkdf(salt, keying, b"Content-Encoding: nonce\0", 12)
    header = salt + struct.pack("!IB", RECORD_SIZE, len(public)) + public
    return header + AESGCM(key).encrypt(nonce, plaintext + _LAST_RECORD, None)


def _hkdf(salt: bytes, keying: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(keying)
