"""The organization that a person with several worked in last, kept in the session."""

from django.http import HttpRequest

from rme.core.http.browser import is_poll

_KEY = "console_organization"


def remember(request: HttpRequest, organization_id: str) -> None:
    """Store the organization of a page that a person opens or saves, not of one that polls: the
    person may work in another by now, in another tab.
    """
    if not is_poll(request) and request.session.get(_KEY) != organization_id:
        request.session[_KEY] = organization_id


def remembered(request: HttpRequest) -> str:
    """Return the id of the organization, which may be closed to the person by now; or nothing."""
    return str(request.session.get(_KEY, ""))
