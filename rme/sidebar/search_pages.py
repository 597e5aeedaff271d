"""The search of the console: a page, and what its field (⌘K) shows while a person types.

`messaging.console.search` finds people and things; the pages of the menu, commands and
organizations are added here.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from messaging.console import access, search
from messaging.console.access import Viewer
from messaging.console.search import Group, Result, Search
from rme.sidebar.commands import commands
from rme.sidebar.kinds import PageLink
from rme.sidebar.shell import chosen, pages, url_in
from rme.tenants.access.roles import (
    Permission,
    has_several_organizations,
    held_permissions,
    own_organizations,
)

LIMIT = 10
"""The most results of a kind on the page."""
TYPING_LIMIT = 5
TERM_LIMIT = 320
ORGANIZATIONS = "organizations"
"""The kind of results that the switcher asks for."""


def _show(request: HttpRequest) -> HttpResponseBase:
    """Return the results of a search as a page; a single one is opened at once."""
    viewer, term = _viewer(request), _term(request)
    groups, notes = _find(request, Search(viewer, term, LIMIT))
    results = [result for group in groups for result in group.results]
    if len(results) == 1:
        return HttpResponseRedirect(results[0].url)
    return access.show(
        *(request, viewer, "search", _("Search")),
        term=term,
        groups=groups,
        notes=notes,
        kind=_kind(request),
    )


def _suggest(request: HttpRequest) -> HttpResponseBase:
    """Return what the field shows for what was typed so far: a part of a page."""
    viewer, term = _viewer(request), _term(request)
    groups, notes = _find(request, Search(viewer, term, TYPING_LIMIT, is_typing=True))
    is_everything = _kind(request) != ORGANIZATIONS
    page = {"page": request.GET["page"]} if "page" in request.GET else {}
    query = urlencode({"organization": viewer.organization_id, "q": term, **page})
    return render(
        request,
        "admin/console/search_results.html",
        {
            "term": term,
            "groups": groups,
            "notes": notes,
            "count": sum(len(group.results) for group in groups),
            "prefix": "search" if is_everything else ORGANIZATIONS,
            "all_url": f"{reverse('search')}?{query}" if term and is_everything else "",
        },
    )


show = admin.site.admin_view(require_GET(_show))
suggest = admin.site.admin_view(require_GET(_suggest))


def _viewer(request: HttpRequest) -> Viewer:
    """Return the person in the organization that is searched. Raise PermissionDenied."""
    organization_id = chosen(request, request.GET.get("organization", ""))
    if not organization_id:
        raise PermissionDenied
    # Every role has one of the two.
    sees_messages = Permission.SEE_MESSAGES in held_permissions(request.user, organization_id)
    permission = Permission.SEE_MESSAGES if sees_messages else Permission.SEE_TEMPLATES
    return access.viewer_of(request, organization_id, permission)


def _term(request: HttpRequest) -> str:
    return request.GET.get("q", "").replace("\0", "").strip()[:TERM_LIMIT]


def _kind(request: HttpRequest) -> str:
    """Return the one kind of results that is asked for; nothing for all kinds."""
    return ORGANIZATIONS if request.GET.get("kind") == ORGANIZATIONS else ""


def _find(request: HttpRequest, typed: Search) -> tuple[list[Group], list[str]]:
    """Return results by kind, and what was not searched.

    Pages and commands come first if the title of one begins with the term, and without a term.
    """
    if _kind(request) == ORGANIZATIONS:
        return _groups([(_("Organizations"), "domain", _organizations(request, typed))]), []
    entries = _groups(_entries(typed))
    if not typed.term:
        return entries, []
    groups, notes = search.find(request, typed)
    first = [group for group in entries if _begins(group.results[0].title, typed.term)]
    others = [group for group in entries if group not in first]
    last = _groups([(_("Organizations"), "domain", _organizations(request, typed))])
    return [*first, *groups, *others, *last], notes


def _groups(kinds: Iterable[tuple[str, str, list[Result]]]) -> list[Group]:
    return [Group(*kind) for kind in kinds if kind[2]]


def _entries(typed: Search) -> Iterator[tuple[str, str, list[Result]]]:
    """Yield the pages and the commands that the person may open and that have the typed words."""
    organization_id = typed.viewer.organization_id
    permissions = held_permissions(typed.viewer.user, organization_id)
    yield _("Pages"), "arrow_forward", _matching(pages(organization_id, permissions), typed)
    yield _("Commands"), "bolt", _matching(commands(organization_id, permissions), typed)


def _matching(links: Iterable[PageLink], typed: Search) -> list[Result]:
    typed_words = _words(typed.term)
    matching = [link for link in links if _has(link.title, typed_words)]
    matching.sort(key=lambda link: not _begins(link.title, typed.term))
    return [Result(link.title, "", link.url) for link in matching[: typed.limit]]


def _has(title: str, typed_words: list[str]) -> bool:
    """Return whether each of the words begins a word of a title."""
    words = _words(title)
    return all(any(word.startswith(each) for word in words) for each in typed_words)


def _begins(title: str, term: str) -> bool:
    return " ".join(_words(title)).startswith(" ".join(_words(term)))


def _words(text: str) -> list[str]:
    """Return the words of a text without case and accents."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(each for each in plain if not unicodedata.combining(each)).split()


def _organizations(request: HttpRequest, typed: Search) -> list[Result]:
    """Return the other organizations of the person, by name or id."""
    if not has_several_organizations(request.user):
        return []
    rows = own_organizations(request, typed.limit + 1, text=typed.term)
    return [
        Result(name, organization_id, url_in(request, organization_id, request.GET.get("page", "")))
        for organization_id, name in rows
        if organization_id != typed.viewer.organization_id
    ][: typed.limit]
