"""The backend of log-ins by password.

Running sessions name it by this path. With another one Django would end them, and the release
before wouldn't know new ones.
"""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from rme.tenants.access.limits.logins import LoginAttempt
from rme.tenants.audit import Action


class LimitedBackend(ModelBackend):
    """Checks user names and passwords (Django's hook, which every login passes)."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: object,
    ) -> Any:
        """Return the user with this password. Raise RateLimited or PermissionDenied."""
        attempt = LoginAttempt(request, username or "")
        attempt.begin()
        user = super().authenticate(request, username=username, password=password, **kwargs)
        if user is None:
            attempt.record(Action.LOGIN_FAILED, "wrong password")
            raise PermissionDenied  # no other backend may hash it again
        attempt.succeed()
        return user
