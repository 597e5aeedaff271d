"""Access tokens (APNs, FCM, Salesforce): one for all processes, encrypted in Redis.

A push service slows down, or refuses, a client that shows it many new tokens. So one process at a
time makes a new one, under a lock, and the others use the old one meanwhile. While Redis is away
each process has its own.
"""

import hashlib
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex

import orjson
import structlog
from cryptography.fernet import InvalidToken
from redis import RedisError

from rme.core.cache import TtlCache
from rme.core.db.encrypted_fields import keyring
from rme.core.redis.connection import redis_client

log = structlog.get_logger(__name__)

LOCK_MS = 30_000
WAIT_SECONDS = 3.0
"""How long a process without an old token waits for one that another process is making."""


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token, and when it was made (seconds since 1970)."""

    text: str = field(repr=False)
    made_at: float
    base_url: str = ""
    """Where it is to be used, if the log-in named a host."""

    @property
    def age(self) -> float:
        """Return its age in seconds."""
        return time.time() - self.made_at


@dataclass(frozen=True, slots=True)
class Lifetime:
    """Ages of a token, in seconds."""

    renew_after: float
    expires_after: float
    min_age: float = 0.0
    """It is not renewed before, even if the service refuses it."""


_cache: TtlCache[str, AccessToken] = TtlCache(seconds=3600)


def credential_id(*parts: str) -> str:
    """Return a digest that names a credential by all its parts, secrets included."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def get(
    name: str, lifetime: Lifetime, make: Callable[[], AccessToken], *, refused: str = ""
) -> AccessToken:
    """Return a credential's token; `make` makes it if there is none or it is to be renewed.

    `refused` is the text of a token that the service refused: it is replaced if it is old enough,
    else returned again. An error of `make` passes through, unless the old token can still be used.
    """
    cached = _known(name, lifetime, refused)
    is_usable = cached and (cached.text != refused or cached.age < lifetime.min_age)
    if cached and is_usable and cached.age < lifetime.renew_after:
        return cached
    old = cached if cached and cached.text != refused else None
    owner = _lock(name)
    if owner is None:
        shared = old or _wait(name, lifetime, refused)
        return shared or store(name, lifetime, make())
    try:
        latest = _read(name)  # the previous owner of the lock may have made one
        if latest and latest.text != refused and latest.age < lifetime.renew_after:
            _cache.put(name, latest)
            return latest
        return store(name, lifetime, make())
    finally:
        _unlock(name, owner)


def store(name: str, lifetime: Lifetime, token: AccessToken) -> AccessToken:
    """Store a token for all processes, and return it."""
    _cache.put(name, token)
    content = {"text": token.text, "made_at": token.made_at, "place": token.base_url}
    remaining_ms = int((lifetime.expires_after - token.age) * 1000)
    try:
        if remaining_ms > 0:
            redis_client().set(
                _key(name), keyring().encrypt(orjson.dumps(content)), px=remaining_ms
            )
    except RedisError as error:
        log.warning("push.token_unkept", error=type(error).__name__)
    return token


def _known(name: str, lifetime: Lifetime, refused: str) -> AccessToken | None:
    cached = _cache.get(name, lambda: None)
    if cached and cached.age < lifetime.renew_after and cached.text != refused:
        return cached
    latest = _read(name) or cached
    if latest and latest.age < lifetime.expires_after:
        _cache.put(name, latest)
        return latest
    return None


def _key(name: str) -> str:
    return f"rme:push:token:{name}"


def _read(name: str) -> AccessToken | None:
    try:
        encrypted = redis_client().get(_key(name))
        if not encrypted:
            return None
        content = orjson.loads(keyring().decrypt(encrypted))
    except (RedisError, InvalidToken) as error:
        log.warning("push.token_unread", error=type(error).__name__)
        return None
    return AccessToken(content["text"], content["made_at"], content["place"])


def _lock(name: str) -> str | None:
    """Take the lock and return its owner's id; None if another process has it."""
    owner = token_hex(8)
    try:
        is_free = redis_client().set(f"{_key(name)}:lock", owner, nx=True, px=LOCK_MS)
    except RedisError:
        return owner  # without Redis each process makes its own token
    return owner if is_free else None


def _unlock(name: str, owner: str) -> None:
    with suppress(RedisError):  # the lock expires by itself
        if redis_client().get(f"{_key(name)}:lock") == owner.encode():
            redis_client().delete(f"{_key(name)}:lock")


def _wait(name: str, lifetime: Lifetime, refused: str) -> AccessToken | None:
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        time.sleep(0.02)
        token = _read(name)
        if token and token.text != refused and token.age < lifetime.expires_after:
            _cache.put(name, token)
            return token
    return None
