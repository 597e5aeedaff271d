"""`REDIS_URL` and `CELERY_BROKER_URL`: one server, or a primary that Redis Sentinel names.

    redis://host:6379/0   rediss://…   unix:///path?db=0
    redis+sentinel://user:password@host:26379,host2:26379/service/0   rediss+sentinel://…

User and password are the server's; those of the Sentinels are the parameters `sentinel_username`
and `sentinel_password`. redis-py and Celery have no common form for Sentinel; this one is that of
several libraries beside them.
"""

import ssl
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote

from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_noop

SERVERS = ("redis", "rediss", "unix")
SENTINELS = ("redis+sentinel", "rediss+sentinel")
CLUSTER = gettext_noop(
    "is a Redis Cluster, which the service cannot use: name one server, or a primary "
    "with Sentinel (redis+sentinel://host:26379,host2:26379/service/0)"
)
_SENTINEL_PORT = 26379


class Sentinels(NamedTuple):
    """The parts of a URL with Sentinel."""

    hosts: tuple[tuple[str, int], ...]
    service: str
    """The name by which the Sentinels know the primary."""
    database: int = 0
    login: tuple[str, str] = ("", "")
    """User and password of the server."""
    own_login: tuple[str, str] = ("", "")
    """User and password of the Sentinels."""
    tls: bool = False

    def server_options(self) -> dict[str, Any]:
        """Return redis-py's options of a connection to the server."""
        return {"db": self.database, **_login(self.login), **self._tls()}

    def sentinel_options(self) -> dict[str, Any]:
        """Return redis-py's options of a connection to a Sentinel."""
        return {**_login(self.own_login), **self._tls()}

    def _tls(self) -> dict[str, bool]:
        return {"ssl": True} if self.tls else {}


def is_redis(url: str) -> bool:
    """Return whether the address of a broker is one of Redis."""
    return url.partition("://")[0] in (*SERVERS, *SENTINELS)


def check(name: str, url: str) -> str:
    """Return a URL of Redis. Raises ImproperlyConfigured, naming the variable, if it is none."""
    scheme, _, location = url.partition("://")
    if "cluster" in scheme or (scheme in SERVERS[:2] and "," in _hosts(location)):
        raise ImproperlyConfigured(f"{name} {CLUSTER}.")
    if scheme not in (*SERVERS, *SENTINELS):
        raise ImproperlyConfigured(f"{name} must begin with {', '.join((*SERVERS, *SENTINELS))}.")
    sentinels(url, name)
    return url


def sentinels(url: str, name: str = "REDIS_URL") -> Sentinels | None:
    """Parse a URL with Sentinel; return None for another. Raises ImproperlyConfigured.

    The message does not quote the URL, which may hold a password.
    """
    scheme, _, location = url.partition("://")
    if scheme not in SENTINELS:
        return None
    place, _, query = location.partition("?")
    authority, _, path = place.partition("/")
    login, _, hosts = authority.rpartition("@")
    service, _, database = path.partition("/")
    parameters = dict(parse_qsl(query))
    own_login = (
        parameters.pop("sentinel_username", ""),
        parameters.pop("sentinel_password", ""),
    )
    try:
        if not service or parameters:
            raise ValueError
        return Sentinels(
            tuple(_host(each) for each in hosts.split(",")),
            unquote(service),
            int(database or 0),
            _user_and_password(login),
            own_login,
            tls=scheme.startswith("rediss"),
        )
    except ValueError:
        raise ImproperlyConfigured(
            f"{name} must be {scheme}://user:password@host:26379,host2:26379/service/0, without "
            "parameters other than sentinel_username and sentinel_password."
        ) from None


def broker_settings(url: str, name: str) -> dict[str, Any]:
    """Return Celery's settings for a broker, of any kind: `url`, and more where it needs more.

    One that is Redis is checked as `check` does.
    """
    if is_redis(url) or "cluster" in url.partition("://")[0]:
        check(name, url)
    if parsed := sentinels(url, name):
        return _with_sentinel(parsed)
    if url.startswith("unix://"):  # Celery has a scheme of its own for sockets
        path, _, query = url.removeprefix("unix://").partition("?")
        return {
            "url": f"redis+socket://{path}?virtual_host={dict(parse_qsl(query)).get('db', '0')}"
        }
    return {"url": url}


def _with_sentinel(servers: Sentinels) -> dict[str, Any]:
    user, password = (quote(each, safe="") for each in servers.login)
    login = f"{user}:{password}@" if any(servers.login) else ""
    urls = [f"sentinel://{login}{_written(each)}/{servers.database}" for each in servers.hosts]
    settings: dict[str, Any] = {
        "url": ";".join(urls),
        "transport_options": {
            "master_name": servers.service,
            "sentinel_kwargs": {
                "socket_timeout": 2,
                "socket_connect_timeout": 2,
                **servers.sentinel_options(),
            },
        },
    }
    if servers.tls:
        settings["use_ssl"] = {"ssl_cert_reqs": ssl.CERT_REQUIRED}
    return settings


def _hosts(location: str) -> str:
    """Return the hosts of what follows a URL's scheme."""
    return location.partition("/")[0].rpartition("@")[2]


def _host(text: str) -> tuple[str, int]:
    """Return host and port. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(_SENTINEL_PORT)
    if not host:
        raise ValueError
    return host.strip("[]"), int(port)


def _written(host: tuple[str, int]) -> str:
    return f"[{host[0]}]:{host[1]}" if ":" in host[0] else f"{host[0]}:{host[1]}"


def _user_and_password(login: str) -> tuple[str, str]:
    user, _, password = login.partition(":")
    return unquote(user), unquote(password)


def _login(login: tuple[str, str]) -> Mapping[str, str]:
    return {k: v for k, v in zip(("username", "password"), login, strict=True) if v}
