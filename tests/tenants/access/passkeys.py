"""A passkey in software: it answers the challenges of the pages as a browser does."""

import json
import os
from typing import Any

from allauth.account.utils import user_pk_to_url_str
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client
from fido2.cose import ES256
from fido2.utils import sha256, websafe_decode, websafe_encode
from fido2.webauthn import (
    Aaguid,
    AttestationObject,
    AttestedCredentialData,
    AuthenticatorData,
    CollectedClientData,
)

from rme.tenants.models import User

LOGIN = "/admin/account/2fa/webauthn/login/"
ADD = "/admin/account/2fa/webauthn/add/"
PRESENT = AuthenticatorData.FLAG.UP
_PRESENT_AND_VERIFIED = AuthenticatorData.FLAG.UP | AuthenticatorData.FLAG.UV


class Passkey:
    """A key pair of one person for one host."""

    def __init__(self, user: User | None = None, host: str = "testserver") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = os.urandom(16)
        self.host = host
        self.handle = websafe_encode(user_pk_to_url_str(user).encode()) if user else ""

    def add(self, client: Client) -> Any:
        """Add the passkey to the account of a logged-in browser."""
        return client.post(ADD, self.new(client))

    def new(self, client: Client) -> dict[str, str]:
        """Return the form that adds the passkey."""
        options = client.get(ADD).context["js_data"]["creation_options"]["publicKey"]
        return {"name": "laptop", "credential": self.made(options)}

    def made(self, options: dict[str, Any], flags: int = _PRESENT_AND_VERIFIED) -> str:
        """Return the passkey as a page's options ask for it, with the flags of its device."""
        self.handle = options["user"]["id"]
        public_key = ES256.from_cryptography_key(self.key.public_key())
        data = AuthenticatorData.create(
            sha256(self.host.encode()),
            flags | AuthenticatorData.FLAG.AT,
            0,
            AttestedCredentialData.create(Aaguid(bytes(16)), self.id, public_key),
        )
        attestation = AttestationObject.create("none", data, {})
        response = {
            "clientDataJSON": websafe_encode(
                self._client_data("webauthn.create", options["challenge"])
            ),
            "attestationObject": websafe_encode(attestation),
        }
        credential = self._credential(response) | {
            "clientExtensionResults": {"credProps": {"rk": True}}
        }
        return json.dumps(credential)

    def answer(self, client: Client) -> dict[str, Any]:
        """Return the answer to a new challenge of the log-in page."""
        page = client.get(LOGIN, headers={"X-Requested-With": "XMLHttpRequest"})
        challenge = page.json()["request_options"]["publicKey"]["challenge"]
        client_data = self._client_data("webauthn.get", challenge)
        data = AuthenticatorData.create(sha256(self.host.encode()), _PRESENT_AND_VERIFIED, 1)
        signature = self.key.sign(data + client_data.hash, ec.ECDSA(hashes.SHA256()))
        response = {
            "clientDataJSON": websafe_encode(client_data),
            "authenticatorData": websafe_encode(data),
            "signature": websafe_encode(signature),
            "userHandle": self.handle,
        }
        return self._credential(response)

    def _client_data(self, kind: str, challenge: str) -> CollectedClientData:
        return CollectedClientData.create(kind, websafe_decode(challenge), f"http://{self.host}")

    def _credential(self, response: dict[str, str]) -> dict[str, Any]:
        own = websafe_encode(self.id)
        return {"id": own, "rawId": own, "type": "public-key", "response": response}
