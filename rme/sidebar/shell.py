"""What stands around a page: the menu as its person may use it, and the organization's switcher."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from django.contrib.admin.utils import unquote
from django.http import HttpRequest
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext as _

from rme.sidebar.kinds import MenuEntry, MenuPage, PageLink
from rme.sidebar.menu import MENU
from rme.tenants import organizations
from rme.tenants.access.roles import Permission, held_permissions, own_organizations
from rme.tenants.organizations import OrganizationRecord, latest

CHOICES = 50
"""The most organizations that the switcher lists."""
SEARCHED = 10
"""From how many organizations on the switcher has a search."""


@dataclass(frozen=True, slots=True)
class MenuLink:
    """A link of the menu, as a page shows it."""

    title: str
    url: str
    icon: str = ""
    is_current: bool = False
    tabs: tuple["MenuLink", ...] = ()


@dataclass(frozen=True, slots=True)
class MenuGroup:
    """The links below one heading of the menu."""

    title: str
    links: tuple[MenuLink, ...]


@dataclass(frozen=True, slots=True)
class Shell:
    """What stands around each page of the console."""

    organization: OrganizationRecord | None
    """The organization that is chosen; None without any."""
    groups: tuple[MenuGroup, ...]
    other_organizations: tuple[MenuLink, ...]
    """The person's other organizations, each with the address that changes to it."""
    home_url: str
    """The address of Home, in the organization if the person may see its figures."""
    page_key: str = ""
    """The key of the page that is shown, if each organization has it."""

    @property
    def is_searched(self) -> bool:
        """Return whether the switcher has a search: it may list some organizations only."""
        return len(self.other_organizations) >= SEARCHED

    @property
    def current(self) -> MenuLink | None:
        """Return the entry of the page that is shown; None for a page outside the menu."""
        links = [link for group in self.groups for link in group.links if link.is_current]
        return links[0] if links else None

    @property
    def tabs(self) -> Sequence[MenuLink]:
        """Return the tabs of the page that is shown, if there are several."""
        tabs = self.current.tabs if self.current else ()
        return tabs if len(tabs) > 1 else ()


def frame(request: HttpRequest) -> dict[str, object]:
    """Return the shell of a page (a context processor); it is made when a page shows it."""
    return {"shell": SimpleLazyObject(partial(shell, request))}


def shell(request: HttpRequest) -> Shell:
    """Return the menu for the person of a request, and its organizations; one statement."""
    if not request.user.is_staff:
        return Shell(None, (), (), reverse("admin:index"))
    choices = own_organizations(request, CHOICES)
    current_id = _chosen(request, choices)
    permissions = held_permissions(request.user, current_id)
    page = next((page for page in _organization_pages() if page.has(request)), None)
    others = [choice for choice in choices if choice[0] != current_id]
    groups = tuple(
        MenuGroup(_(title) if title else "", links)
        for title, entries in MENU
        if (links := tuple(_links(request, entries, current_id, permissions)))
    )
    return Shell(
        organizations.get(current_id) if current_id else None,
        groups,
        tuple(MenuLink(name, _url_in(request, each, page)) for each, name in others),
        _home(current_id, permissions),
        page.key if page else "",
    )


def pages(organization_id: str, permissions: frozenset[Permission]) -> Iterator[PageLink]:
    """Yield the pages of the menu that somebody with these permissions may open.

    A page with tabs has its entry in the title, unless it is the first one.
    """
    for _title, entries in MENU:
        for entry in entries:
            for page in entry.pages:
                if page.is_open_to(permissions):
                    name, tab = _(entry.title), _(page.title)
                    title = name if page is entry.pages[0] else f"{name}: {tab}"
                    yield PageLink(title, page.url(organization_id))


def url_in(request: HttpRequest, organization_id: str, page_key: str) -> str:
    """Return the address of a page in an organization: of the first one that the person may open
    there, if that isn't the one with the key.
    """
    page = next((page for page in _organization_pages() if page.key == page_key), None)
    return _url_in(request, organization_id, page)


def chosen(
    request: HttpRequest, requested_id: str, choices: Sequence[tuple[str, str]] | None = None
) -> str:
    """Return the requested organization if it is the person's, else the latest, else the first.

    It is empty without any. `choices` are the person's first organizations, if they were read.
    """
    for organization_id in filter(None, (requested_id, latest.remembered(request))):
        if organization_id in dict(choices or ()):
            return organization_id
        if held_permissions(request.user, organization_id) and organizations.get_many(
            [organization_id]
        ):
            return organization_id
    first = own_organizations(request, 1) if choices is None else choices
    return first[0][0] if first else ""


def _home(organization_id: str, permissions: frozenset[Permission]) -> str:
    home = reverse("admin:index")
    if not organization_id or Permission.SEE_MESSAGES not in permissions:
        return home
    return f"{home}?organization={organization_id}"


def _chosen(request: HttpRequest, choices: Sequence[tuple[str, str]]) -> str:
    """Return the organization in the address, or the latest, or the first; empty without any."""
    match = request.resolver_match
    requested_id = str(match.kwargs.get("organization_id", "")) if match else ""
    if match and match.view_name == "admin:tenants_organization_change":
        requested_id = unquote(match.kwargs["object_id"])
    return chosen(request, requested_id, choices)


def _links(
    request: HttpRequest,
    entries: Sequence[MenuEntry],
    organization_id: str,
    permissions: frozenset[Permission],
) -> Iterator[MenuLink]:
    for entry in entries:
        pages = [
            page
            for page in entry.pages
            if page.is_open_to(permissions) and (organization_id or not page.is_of_organization)
        ]
        if not pages:
            continue
        current = next((page for page in pages if page.has(request)), None)
        tabs = tuple(
            MenuLink(_(page.title), page.url(organization_id), is_current=page is current)
            for page in pages
        )
        yield MenuLink(_(entry.title), tabs[0].url, entry.icon, current is not None, tabs)


def _organization_pages() -> list[MenuPage]:
    pages = [page for _, entries in MENU for entry in entries for page in entry.pages]
    return [page for page in pages if page.is_of_organization]


def _url_in(request: HttpRequest, organization_id: str, page: MenuPage | None) -> str:
    permissions = held_permissions(request.user, organization_id)
    pages = filter(None, (page, *_organization_pages()))
    open_page = next((page for page in pages if page.is_open_to(permissions)), None)
    return open_page.url(organization_id) if open_page else reverse("admin:index")
