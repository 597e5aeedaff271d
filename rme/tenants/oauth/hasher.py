"""Digests of client secrets.

A slow hash protects what people choose. Our secrets are 256 random bits, which nobody finds by
trying however fast the hash is (NIST SP 800-63B §5.1.1.2 asks for slow ones below 112 bits), and a
slow one would cost 300 ms of CPU for each token.
"""

import hashlib
import secrets
from typing import Any

from django.contrib.auth.hashers import BasePasswordHasher


class SecretHasher(BasePasswordHasher):
    """SHA-256 of a random secret."""

    algorithm = "random_secret_sha256"

    def salt(self) -> str:
        return ""

    def encode(self, password: str, salt: str) -> str:
        return f"{self.algorithm}${hashlib.sha256(password.encode()).hexdigest()}"

    def verify(self, password: str, encoded: str) -> bool:
        return secrets.compare_digest(self.encode(password, ""), encoded)

    def decode(self, encoded: str) -> dict[str, Any]:
        algorithm, digest = encoded.split("$", 1)
        return {"algorithm": algorithm, "hash": digest, "salt": ""}

    def safe_summary(self, encoded: str) -> dict[Any, Any]:
        return {"algorithm": self.algorithm}

    def must_update(self, encoded: str) -> bool:
        return False

    def harden_runtime(self, password: str, encoded: str) -> None:
        """Do nothing: there are no iterations to make up for."""
