"""The kinds of pages that stand in the menu."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.urls import reverse

from rme.tenants.access.roles import Permission


class PageLink(NamedTuple):
    """A page by its title in the person's language, and its address."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class MenuPage:
    """A page of the menu: of the console, of a model, or another."""

    title: str
    """In English; whoever shows it translates it."""
    permission: Permission | None
    """What the page asks for; None: what the model's page asks for, or nothing."""
    route: str = ""
    lower_routes: tuple[str, ...] = ()
    """The routes of pages below this one."""
    models: tuple[str, ...] = ()
    """The models whose pages are below this one; without a route, the first one's list is it."""

    @property
    def is_of_organization(self) -> bool:
        """Return whether each organization has the page."""
        return not self.route or self.route.startswith("console:")

    @property
    def key(self) -> str:
        """Return what names the page in a request."""
        return self.route or self.models[0]

    def url(self, organization_id: str) -> str:
        """Return the page's address in an organization."""
        if not self.route:
            return f"{_list_url(self.models[0])}?organization={organization_id}"
        if self.route.startswith("/"):
            return self.route
        return reverse(self.route, args=[organization_id] if self.is_of_organization else [])

    def is_open_to(self, permissions: frozenset[Permission]) -> bool:
        """Return whether somebody with these permissions may open the page."""
        if self.permission or self.route:
            return self.permission is None or self.permission in permissions
        model_page: Any = admin.site.get_model_admin(apps.get_model(self.models[0]))
        return model_page.read_permission in permissions

    def has(self, request: HttpRequest) -> bool:
        """Return whether a request is for this page, or for one below it."""
        match = request.resolver_match
        if match and match.view_name in (self.route, *self.lower_routes):
            return True
        return any(request.path.startswith(_list_url(model)) for model in self.models)


@dataclass(frozen=True, slots=True)
class HomePage(MenuPage):
    """The first page of the admin."""

    is_of_organization = True

    def url(self, organization_id: str) -> str:
        return f"{reverse(self.route)}?organization={organization_id}"


@dataclass(frozen=True, slots=True)
class OrganizationPage(MenuPage):
    """The settings of the organization that is chosen."""

    is_of_organization = True

    def url(self, organization_id: str) -> str:
        return reverse(self.route, args=[quote(organization_id)])


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """An entry of the menu."""

    title: str
    icon: str
    pages: tuple[MenuPage, ...]


def _list_url(model: str) -> str:
    return reverse(f"admin:{model.lower().replace('.', '_')}_changelist")
