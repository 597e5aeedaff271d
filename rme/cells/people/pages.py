"""Pages by which a person goes from one cell to another.

`choose` hands the log-in over, in the cell that the person leaves. The other two are of the cell to
which it goes: `enter` logs the person in, and `connect` asks once whether the account is the
person's.
"""

import time
from typing import Any
from uuid import UUID

from allauth.account.adapter import get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.account.internal.flows.login import (
    AUTHENTICATION_METHODS_SESSION_KEY,
    perform_login,
    record_authentication,
)
from allauth.account.models import Login
from allauth.account.signals import user_logged_in
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import admin, messages
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods

from rme.cells import signatures
from rme.cells.people import elsewhere, hand_off
from rme.cells.people.hand_off import HandOff, InvalidHandOff
from rme.core.http.pages import see_other
from rme.tenants import audit
from rme.tenants.access import sessions
from rme.tenants.access.roles import Permission, organizations_for
from rme.tenants.audit import Action
from rme.tenants.models import User
from rme.tenants.organizations import latest

ARRIVAL = "rme_arrival"
"""The key in the session of a person who came from another cell and has to log in here first."""
ARRIVAL_SECONDS = 600
NOT_VALID = gettext_lazy(
    "This link from the other cell has expired. Log in here, or choose this cell again there."
)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def choose(request: HttpRequest) -> HttpResponse:
    """Show the organizations in other cells, or go to the one that was chosen."""
    if request.method != "POST":
        context = {**admin.site.each_context(request), "title": gettext("Other cells")}
        context |= {
            "elsewhere": elsewhere.organizations_elsewhere(request),
            "own_cell": settings.CELL,
        }
        return render(request, "account/cells.html", context)
    cell, _, organization = request.POST.get("to", "").partition("/")
    if not settings.CELL or cell not in settings.CELLS or cell == settings.CELL:
        raise Http404
    user = request.user
    assert isinstance(user, User)  # admin_view requires a logged-in user
    proofs = get_authentication_records(request, user)
    cookie = hand_off.make(
        cell,
        user.person,
        organization,
        proofs=proofs,
        chain=sessions.chain(request),
        began=sessions.began(request),
    )
    entries = audit.about_person(user, Action.HANDED_OVER, text=f"cell {cell}")
    audit.record(audit.actor_of(request), entries)
    response = see_other(reverse("cells_enter"))
    _set(response, hand_off.COOKIE, cookie, hand_off.SECONDS, reverse("cells_enter"))
    _set(response, signatures.CELL_COOKIE, cell, signatures.CELL_COOKIE_SECONDS, "/")
    return response


@never_cache
@require_GET
def enter(request: HttpRequest) -> HttpResponse:
    """Log a person in who comes from another cell with a valid hand-off."""
    try:
        arrival = hand_off.take(request.COOKIES.get(hand_off.COOKIE, ""))
    except InvalidHandOff:
        messages.error(request, str(NOT_VALID))
        response = see_other(reverse("admin:login"))
    else:
        elsewhere.forget(UUID(arrival.person))
        user = User.objects.filter(person=arrival.person, is_active=True, is_staff=True).first()
        response = _log_in(request, user, arrival) if user else _arrive(request, arrival)
    response.delete_cookie(hand_off.COOKIE, path=reverse("cells_enter"))
    return response


def _log_in(request: HttpRequest, user: User, arrival: HandOff) -> HttpResponse:
    if request.user.pk == user.pk:
        return _go_to(request, arrival.organization)
    record_authentication(request, user, method=f"cell {arrival.source}")
    request.session[AUTHENTICATION_METHODS_SESSION_KEY] = [
        *get_authentication_records(request, user),
        *arrival.proofs,
    ]
    if is_mfa_enabled(user) and not arrival.has_second_factor:
        redirect_url = reverse("admin:index")
        response: HttpResponse = perform_login(request, Login(user=user, redirect_url=redirect_url))
        return response
    get_adapter().login(request, user)
    sessions.continue_chain(request, arrival.chain, arrival.began)
    request.session[sessions.FACTOR_ELSEWHERE] = arrival.has_second_factor
    response = _go_to(request, arrival.organization)
    # The list of a person's sessions is filled by this signal.
    user_logged_in.send(sender=User, request=request, response=response, user=user)
    return response


def _arrive(request: HttpRequest, arrival: HandOff) -> HttpResponse:
    """Ask a person whose account here is not known to log in, and to connect it."""
    request.session[ARRIVAL] = {
        "person": arrival.person,
        "source": arrival.source,
        "organization": arrival.organization,
        "until": int(time.time()) + ARRIVAL_SECONDS,
    }
    connect_page = reverse("cells_connect")
    if request.user.is_authenticated:
        return see_other(connect_page)
    messages.info(request, gettext("Log in here once, to connect your account in this cell."))
    query = urlencode({"next": connect_page, "cell": settings.CELL})
    return see_other(f"{reverse('admin:login')}?{query}")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def connect(request: HttpRequest) -> HttpResponse:
    """Ask whether the account of this session is that of the person who came, and connect it."""
    arrival: dict[str, Any] | None = request.session.get(ARRIVAL)
    if arrival is None or arrival["until"] < time.time():
        raise Http404
    # A person has one connection: to the account with which it comes, instead of a former one.
    former = [each.cell for each in elsewhere.organizations_elsewhere(request) if each.connected]
    if request.method != "POST":
        context = {**admin.site.each_context(request), "title": gettext("Connect your accounts")}
        context |= {"arrival": arrival, "former": former}
        return render(request, "account/cells_connect.html", context)
    user = request.user
    assert isinstance(user, User)  # admin_view requires a logged-in user
    del request.session[ARRIVAL]
    text = f"cell {arrival['source']}" + (f", not {', '.join(former)} any more" if former else "")
    try:
        with transaction.atomic():
            User.objects.filter(pk=user.pk).update(person=UUID(arrival["person"]))
            entries = audit.about_person(user, Action.CONNECTED, text=text)
            audit.record(audit.actor_of(request), entries)
    except IntegrityError:
        messages.error(request, gettext("Another account of this cell is connected already."))
        return see_other(reverse("admin:index"))
    elsewhere.forget(user.person)
    return _go_to(request, arrival["organization"])


def _go_to(request: HttpRequest, organization: str) -> HttpResponse:
    """Lead to the chosen organization, if the person sees its messages."""
    rows = organizations_for(request, Permission.SEE_MESSAGES)
    if organization and rows.filter(pk=organization).exists():
        latest.remember(request, organization)
        return see_other(reverse("console:messages", args=[organization]))
    return see_other(reverse("admin:index"))


def _set(response: HttpResponse, name: str, value: str, seconds: int, path: str) -> None:
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path=path,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


choose, connect = admin.site.admin_view(choose), admin.site.admin_view(connect)
