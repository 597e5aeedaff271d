"""Who does something, and from where."""

from dataclasses import dataclass
from typing import Any, cast

from django.http import HttpRequest

from rme.core import logs
from rme.core.http.edge import address_of
from rme.tenants.models import User

USER_AGENT_LENGTH = 200


@dataclass(frozen=True, slots=True)
class Actor:
    """A person who does something; without an id a program, or an unknown person."""

    user_id: int | None = None
    name: str = ""
    acting_as_id: int | None = None
    """The user whom the person acts as, if any."""
    acting_as_name: str = ""
    address: str = ""
    request_id: str = ""
    user_agent: str = ""


COMMAND_LINE = Actor(name="command-line")


class ActingRequest(HttpRequest):
    """A request of a person who acts as another user, who is its `user`."""

    acting_by: User
    acting_reason: str


def person_behind(request: HttpRequest) -> User:
    """Return the person behind a request, also while acting as another user."""
    acting: User | None = getattr(request, "acting_by", None)
    return acting or cast(User, request.user)


def actor_of(request: HttpRequest, user: User | None = None) -> Actor:
    """Return the actor of a request. `user` is who logs in or out by it, if not its user."""
    person = user or person_behind(request)
    acting = user is None and hasattr(request, "acting_by")
    acted_as = cast(User, request.user) if acting else None
    return Actor(
        user_id=person.pk,
        name=person.get_username(),
        acting_as_id=acted_as.pk if acted_as else None,
        acting_as_name=acted_as.get_username() if acted_as else "",
        **_origin(request),
    )


def stranger(request: HttpRequest | None) -> Actor:
    """Return the actor of an anonymous request: its address alone."""
    return Actor(**_origin(request)) if request else Actor()


def application(request: HttpRequest, application_id: int) -> Actor:
    """Return the actor of a REST call."""
    return Actor(name=f"application {application_id}", **_origin(request))


def _origin(request: HttpRequest) -> dict[str, Any]:
    return {
        "address": address_of(request)[:64],
        "request_id": logs.request_id.get(),
        "user_agent": request.headers.get("User-Agent", "")[:USER_AGENT_LENGTH],
    }
