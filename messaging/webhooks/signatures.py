"""Signatures of outbound webhooks, by the rules of Standard Webhooks.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Sequence

PREFIX = "whsec_"
_BYTES = 32
"""The rules require 24 to 64."""


def new_secret() -> str:
    """Return a new secret in the form that receivers store: `whsec_` and base64."""
    return PREFIX + b64encode(secrets.token_bytes(_BYTES)).decode()


def sign(keys: Sequence[str], webhook_id: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature`: one signature per secret."""
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return " ".join(f"v1,{_signature(key, signed)}" for key in keys)


def _signature(key: str, signed: bytes) -> str:
    digest = hmac.digest(b64decode(key.removeprefix(PREFIX)), signed, "sha256")
    return b64encode(digest).decode()
