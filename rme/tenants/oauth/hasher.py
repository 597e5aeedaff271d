"""Digests of client secrets.

A slow hash protects passwords that people choose. Client secrets have 256 random bits and cannot be
guessed, however fast the hash is (NIST SP 800-63B §5.1.1.2 requires slow hashes below 112 bits). A
slow hash would take 300 ms of CPU for each token.
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

    def decode(self, encoded: str) -> dict[str, object]:
        algorithm, digest = encoded.split("$", 1)
        return {"algorithm": algorithm, "hash": digest, "salt": ""}

    def safe_summary(self, encoded: str) -> dict[Any, Any]:
        return {"algorithm": self.algorithm}

    def must_update(self, encoded: str) -> bool:
        return False

    def harden_runtime(self, password: str, encoded: str) -> None:
        """Do nothing: the hash has no iterations."""
