"""Credentials' tokens (APNs, FCM, the platform): one for all processes, kept in Redis, encrypted.

A push service slows down or refuses who shows it ever new tokens. So one process at a time makes
a new one, by a lock, and all others use the old one meanwhile. While Redis is away each process
keeps its own.
"""

import hashlib
import time
from collections.abc import Callable
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
"""How long is waited for a token that another process is making, where there is no old one."""
PROVEN_SECONDS = 400 * 86_400


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and when it was made (seconds since 1970). `place`: where it is to be used."""

    text: str = field(repr=False)
    made_at: float
    place: str = ""

    def age(self) -> float:
        """Give its age in seconds."""
        return time.time() - self.made_at


@dataclass(frozen=True, slots=True)
class Life:
    """Ages in seconds: renewed from `renew` on, of no use from `end` on, and never renewed before
    `least`, whatever is said of it.
    """

    renew: float
    end: float
    least: float = 0.0


_kept: TtlCache[str, Token] = TtlCache(seconds=3600)
_proven: TtlCache[str, bool] = TtlCache(seconds=3600)


def name_of(*parts: str) -> str:
    """Name a credential by what it is made of, secrets included, without telling them."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def get(name: str, life: Life, make: Callable[[], Token], *, refused: str = "") -> Token:
    """Give the token of a credential, made by `make` where there is none, or it is to be renewed.

    `refused` is the text of a token that was refused: another is given if it is old enough to be
    replaced, else the same. What `make` raises passes through, unless the old one still serves.
    """
    known = _known(name, life, refused)
    if known and known.age() < life.renew and (known.text != refused or known.age() < life.least):
        return known
    still_good = known if known and known.text != refused else None
    owner = _lock(name)
    if owner is None:
        other = still_good or _wait(name, life, refused)
        return other or _keep(name, life, make())
    try:
        latest = _read(name)  # whoever held the lock before may have made one
        if latest and latest.text != refused and latest.age() < life.renew:
            _kept.put(name, latest)
            return latest
        return _keep(name, life, make())
    finally:
        _unlock(name, owner)


def keep(name: str, life: Life, token: Token) -> None:
    """Keep a token that came from elsewhere."""
    _keep(name, life, token)


def _known(name: str, life: Life, refused: str) -> Token | None:
    own = _kept.get(name, lambda: None)
    if own and own.age() < life.renew and own.text != refused:
        return own
    latest = _read(name) or own
    if latest and latest.age() < life.end:
        _kept.put(name, latest)
        return latest
    return None


def _key(name: str) -> str:
    return f"rme:push:token:{name}"


def _read(name: str) -> Token | None:
    try:
        stored = redis_client().get(_key(name))
        return Token(**orjson.loads(keyring().decrypt(stored))) if stored else None
    except (RedisError, InvalidToken) as error:
        log.warning("push.token_unread", error=type(error).__name__)
        return None


def _keep(name: str, life: Life, token: Token) -> Token:
    _kept.put(name, token)
    content = {"text": token.text, "made_at": token.made_at, "place": token.place}
    left = int((life.end - token.age()) * 1000)
    try:
        if left > 0:
            redis_client().set(_key(name), keyring().encrypt(orjson.dumps(content)), px=left)
    except RedisError as error:
        log.warning("push.token_unkept", error=type(error).__name__)
    return token


def _lock(name: str) -> str | None:
    """Take the lock, and give its owner's sign; None: another has it."""
    owner = token_hex(8)
    try:
        free = redis_client().set(f"{_key(name)}:lock", owner, nx=True, px=LOCK_MS)
    except RedisError:
        return owner  # nobody to agree with: each makes its own
    return owner if free else None


def _unlock(name: str, owner: str) -> None:
    try:
        if redis_client().get(f"{_key(name)}:lock") == owner.encode():
            redis_client().delete(f"{_key(name)}:lock")
    except RedisError:
        pass  # it ends by itself


def _wait(name: str, life: Life, refused: str) -> Token | None:
    until = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        time.sleep(0.02)
        found = _read(name)
        if found and found.text != refused and found.age() < life.end:
            _kept.put(name, found)
            return found
    return None


# --- what has worked ------------------------------------------------------------------------------


def prove(names: set[str]) -> None:
    """Note that something (a credential, a credential with a topic) has been taken once."""
    fresh = [name for name in names if not _proven.get(name, lambda: None)]
    if not fresh:
        return
    try:
        with redis_client().pipeline(transaction=False) as pipeline:
            for name in fresh:
                pipeline.set(f"rme:push:proven:{name}", 1, ex=PROVEN_SECONDS)
            pipeline.execute()
    except RedisError as error:
        log.warning("push.proof_unkept", error=type(error).__name__)
    for name in fresh:
        _proven.put(name, True)


def is_proven(name: str) -> bool:
    """Say whether it has ever been taken. In doubt no: then a device is left alone."""

    def ask() -> bool | None:
        try:
            return bool(redis_client().exists(f"rme:push:proven:{name}")) or None
        except RedisError:
            return None

    return bool(_proven.get(name, ask))
