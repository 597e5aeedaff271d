"""Access to pages of the console: a person in one organization, and what they may do there.

An organization that a person may not see is answered like one that does not exist: 404.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from messaging.console.masks import mask, mask_in
from rme.core import errors
from rme.core.process import admission
from rme.core.process.admission import Owners
from rme.core.zones import zone
from rme.tenants import audit, organizations
from rme.tenants.access.roles import Permission, may, organizations_for, organizations_of
from rme.tenants.audit import Action, Actor
from rme.tenants.models import Organization, User
from rme.tenants.organizations import OrganizationRecord
from rme.tenants.organizations import latest as latest_organization

CHOICES = 200
"""The most organizations that a page offers to change to."""


class Question(NamedTuple):
    """What a page asks before it does what a button says."""

    do: str
    button: str
    text: str
    effect: str


@dataclass(frozen=True, slots=True)
class Viewer:
    """A person on an organization's pages."""

    user: User
    organization: OrganizationRecord
    actor: Actor
    """The person, and the address of the request, as the audit records them."""
    needed: Permission = Permission.SEE_MESSAGES
    """The permission that the page asks for."""

    @property
    def organization_id(self) -> str:
        return self.organization.id

    @property
    def zone(self) -> ZoneInfo:
        return zone(self.organization.zone)

    @property
    def sees_contents(self) -> bool:
        return self.may(Permission.SEE_CONTENTS)

    @property
    def sees_addresses(self) -> bool:
        return self.may(Permission.SEE_ADDRESSES)

    @property
    def may_operate(self) -> bool:
        """Return whether the person may cancel, resend and pause."""
        return self.may(Permission.OPERATE)

    @property
    def may_change_people(self) -> bool:
        """Return whether the person may record consent and lift suppressions."""
        return self.may(Permission.CHANGE_PEOPLE)

    def may(self, permission: Permission) -> bool:
        """Return whether the person has a permission in the organization."""
        return may(self.user, self.organization.id, permission)

    def require(self, permission: Permission) -> None:
        """Raise PermissionDenied unless the person has a permission in the organization."""
        if not self.may(permission):
            raise PermissionDenied

    def shown(self, address: str | None) -> str:
        """Return an address as this person may see it."""
        if not address or self.sees_addresses:
            return address or ""
        return mask(address)

    def without(self, text: str, address: str | None) -> str:
        """Return a text, such as a provider's reason, with its addresses as this person may see
        them: that of the recipient however it is written, and all others.
        """
        return text if self.sees_addresses else mask_in(text, address or "")


View = Callable[..., HttpResponseBase]


def page(view: View) -> View:
    """Return a view of an organization's page: it gets the Viewer in place of the id."""
    return page_for(Permission.SEE_MESSAGES)(view)


def page_for(permission: Permission) -> Callable[[View], View]:
    """Return a decorator like `page`, for pages that need another permission."""

    def guard(view: View) -> View:
        @wraps(view)
        def enter(
            request: HttpRequest, organization_id: str, *args: object, **kwargs: object
        ) -> HttpResponseBase:
            viewer = viewer_of(request, organization_id, permission)
            # One time zone on a page: the organization's, also of what people fill in.
            with timezone.override(viewer.zone):
                return view(request, viewer, *args, **kwargs)

        guarded: View = admin.site.admin_view(enter)
        return guarded

    return guard


def viewer_of(
    request: HttpRequest, organization_id: str, permission: Permission = Permission.SEE_MESSAGES
) -> Viewer:
    """Return the person on an organization's pages. Raise Http404 for a stranger to it."""
    user = request.user
    assert isinstance(user, User)  # admin_view requires a logged-in user
    if not may(user, organization_id, permission):
        raise Http404
    try:
        organization = organizations.get(organization_id)
    except Organization.DoesNotExist:
        raise Http404 from None
    admission.claim(request.META, Owners(organization.id, str(user.pk)))
    return Viewer(user, organization, audit.actor_of(request), permission)


def own_organizations(
    request: HttpRequest, permission: Permission = Permission.SEE_MESSAGES
) -> list[tuple[str, str]]:
    """Return the ids and names of the organizations in which a person has a permission."""
    rows = organizations_for(request, permission).values_list("pk", "name")
    return list(rows[:CHOICES])


def readable(request: HttpRequest) -> Q:
    """Return the condition that a row belongs to an organization whose messages a person sees."""
    if request.user.is_superuser:
        return Q()
    return Q(organization_id__in=organizations_of(request, Permission.SEE_MESSAGES))


def latest(request: HttpRequest, permission: Permission = Permission.SEE_MESSAGES) -> str | None:
    """Return the organization whose pages a person looked at last, or the first of its own."""
    organizations = own_organizations(request, permission)
    if (remembered := latest_organization.remembered(request)) in dict(organizations):
        return remembered
    return organizations[0][0] if organizations else None


def first(name: str, permission: Permission = Permission.SEE_MESSAGES) -> View:
    """Return a view that leads to a page of the person's latest organization, or the first."""

    def lead(request: HttpRequest) -> HttpResponseBase:
        organization_id = latest(request, permission)
        if organization_id is None:
            raise PermissionDenied
        return HttpResponseRedirect(reverse(f"console:{name}", args=[organization_id]))

    guarded: View = admin.site.admin_view(lead)
    return guarded


def may_change_templates(request: HttpRequest) -> bool:
    """Return whether a person may write the templates of any organization."""
    return bool(request.user.is_superuser or organizations_of(request, Permission.CHANGE_TEMPLATES))


def show(
    request: HttpRequest, viewer: Viewer | None, template: str, title: str, **context: Any
) -> HttpResponseBase:
    """Return a page of the console; without a viewer it is one of the deployment."""
    match = request.resolver_match
    if viewer:
        latest_organization.remember(request, viewer.organization_id)
    common = {
        **admin.site.each_context(request),
        "title": title,
        "viewer": viewer,
        "organization": viewer.organization if viewer else None,
        "page_name": match.url_name if match else "",
    }
    return render(request, f"admin/console/{template}.html", {**common, **context})


def note(viewer: Viewer, action: Action, row: Model | None = None, **fields: Any) -> None:
    """Record an action on a row, or on the organization if there is none."""
    target = row or Organization(pk=viewer.organization_id, name=viewer.organization.name)
    entry = audit.about(target, action, viewer.organization_id, **fields)
    audit.record(viewer.actor, [entry])


def add_details(form: forms.BaseForm, refusal: errors.InvalidPayload) -> None:
    """Add what the API says about the fields of a form to the form."""
    for each in refusal.details:
        name = each.field if each.field in form.fields else None
        form.add_error(name, f"{each.message[:1].upper()}{each.message[1:]}.")


def values(**fields: object) -> audit.Values:
    """Return the inputs of an action as the audit shows them: changes from nothing to a value."""
    return {name: ["", str(value)] for name, value in fields.items() if value}
