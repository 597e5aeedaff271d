"""Show a new secret once, after a redirect: reloading the page creates no second one.

The secret waits in the browser, encrypted, in a cookie for that page alone: the database never
holds it, and the page removes it.
"""

from datetime import UTC, datetime, timedelta
from typing import ClassVar

import orjson
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import path, reverse

from rme.core.db import clock
from rme.core.db.encrypted_fields import keyring
from rme.tenants.admin.base import TenantAdmin

COOKIE = "rme_new_secret"
LIFETIME = timedelta(minutes=5)


def redirect(request: HttpRequest, url: str, row: Model, *pairs: tuple[str, str]) -> HttpResponse:
    """Redirect to the page that shows a row's secrets, given as pairs of label and value."""
    encrypted = keyring().encrypt(orjson.dumps([_reader(request, row), *pairs])).decode()
    response = HttpResponseRedirect(url)
    response.set_cookie(
        COOKIE,
        encrypted,
        max_age=LIFETIME,
        path=url.partition("?")[0],
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Strict",
    )
    return response


def read(request: HttpRequest, row: Model) -> list[tuple[str, str]]:
    """Return the secrets of a row that wait for this person, as pairs of label and value."""
    try:
        text = keyring().decrypt(
            request.COOKIES.get(COOKIE, "").encode(), ttl=int(LIFETIME.total_seconds())
        )
    except InvalidToken:
        return []
    owner, *pairs = orjson.loads(text)
    return [(name, value) for name, value in pairs] if owner == _reader(request, row) else []


def forget(request: HttpRequest, response: HttpResponseBase) -> None:
    """Remove the secrets from the browser, and keep the page that shows them out of caches."""
    response["Cache-Control"] = "no-store"
    response.delete_cookie(COOKIE, path=request.path, samesite="Strict")


def _reader(request: HttpRequest, row: Model) -> str:
    """Return what binds a secret to its row and to the person who created it."""
    return f"{request.user.pk} {row._meta.label} {row.pk}"


def _moment(milliseconds: str) -> datetime | None:
    """Return the time of so many milliseconds since 1970; None if the text isn't a time."""
    if not milliseconds.isdecimal() or len(milliseconds) > 13:
        return None
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


class ShownOnce(TenantAdmin):
    """A page whose rows have a secret that is shown once."""

    waits: ClassVar[bool] = False
    """Whether the page of a new secret waits for the first request."""

    def first_request(self, row: Model, since: datetime | None) -> object:
        """Return a program's oldest request since its secret was made, if there is one.

        `since` is None where the page was opened without the time.
        """
        return None

    def done_url(self, row: Model) -> str:
        """Return the address of the page to which the page of a secret leads."""
        return reverse(f"admin:{self._prefix}_change", args=[row.pk])

    def get_urls(self) -> list[object]:
        view, name = self.admin_site.admin_view(self.secret), f"{self._prefix}_secret"
        return [path("<path:object_id>/secret/", view, name=name), *super().get_urls()]

    def show_once(self, request: HttpRequest, row: Model, *pairs: tuple[str, str]) -> HttpResponse:
        """Redirect to the page that shows these secrets, given as pairs of label and value."""
        url = reverse(f"admin:{self._prefix}_secret", args=[row.pk])
        made = int(clock.now().timestamp() * 1000)
        return redirect(request, f"{url}?since={made}" if self.waits else url, row, *pairs)

    def secret(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show the new secret of a row, if it has not been shown."""
        row = self.get_object(request, object_id)
        pairs = read(request, row)
        entry = self.first_request(row, _moment(request.GET.get("since", "")))
        context = {
            "pairs": pairs,
            "waits": self.waits,
            "first_request": entry,
            "done_url": self.done_url(row),
        }
        response = self.show(request, "secret", row, title=str(row), **context)
        forget(request, response)
        return response

    @property
    def _prefix(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}"
