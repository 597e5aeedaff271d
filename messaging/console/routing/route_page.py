"""What would happen to a message: whether it may go, and which account would take it.

It asks the gates that decide about each send, and the routing that the send loop asks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.text import get_text_list
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from messaging.console import access, wording
from messaging.console.access import Viewer
from messaging.console.messages import explanations
from messaging.console.people import reachability
from messaging.console.people.reachability import CategoryReach
from messaging.console.routing import lanes
from messaging.console.routing.route_form import RouteForm
from messaging.content import compose
from messaging.delivery import accounts
from messaging.delivery.accounts import RouteAnswer, RouteStep
from messaging.domain.channels import Channel
from messaging.domain.policy import TRANSACTIONAL
from messaging.policy import organization_policy
from push.active_devices import active_devices
from rme.core import addresses, errors
from rme.crm import people
from rme.crm.connectors.records import ContactRecord
from rme.tenants.access.roles import Permission

LIMIT = 10
NOBODY = ContactRecord("")
"""The recipient of a message to an address that no contact has."""
WHY = {
    RouteAnswer.FIRST: (gettext_lazy("Sends it"), "good"),
    RouteAnswer.NEXT: (gettext_lazy("Tried next, if those before can't send it"), "info"),
    RouteAnswer.TRIED_LAST: (
        gettext_lazy("Tried last: it is failing, or its provider asked rme to slow down"),
        "warn",
    ),
    RouteAnswer.NO_MATCH: (gettext_lazy("Not tried: it takes other recipients"), "muted"),
    RouteAnswer.DRAINING: (gettext_lazy("Not tried: it is draining"), "muted"),
    RouteAnswer.PAUSED: (gettext_lazy("Not tried: it is paused"), "muted"),
    RouteAnswer.BROKEN: (gettext_lazy("Not tried: its settings are broken"), "bad"),
}


@dataclass(frozen=True, slots=True)
class RouteLine:
    """An account of the route, in words."""

    name: str
    url: str
    words: str
    colour: str
    takes: str


@dataclass(frozen=True, slots=True)
class PersonRoute:
    """What would happen to a message to one recipient."""

    whom: str
    person_url: str
    channel: str
    """As a label."""
    sentence: str
    is_sent: bool
    lines: Sequence[RouteLine]


@access.page_for(Permission.SEE_SETTINGS)
@require_GET
def show(request: HttpRequest, viewer: Viewer) -> HttpResponseBase:
    """Return the answer for a recipient; several people of a name are listed."""
    query_data = request.GET.copy()
    if not query_data.get("category"):
        query_data["category"] = TRANSACTIONAL
    form = RouteForm(viewer, query_data if "to" in query_data else None)
    contacts: list[ContactRecord] = []
    route, problem = None, ""
    if form.is_valid():
        try:
            contacts, route = _ask(viewer, form)
        except errors.Unavailable as error:
            problem = error.message
        if not (contacts or route or problem):
            problem = _("Nobody has this name or id, and it isn't an email address or number.")
    query = {name: query_data.get(name, "") for name in ("channel", "category")}
    return access.show(
        request,
        viewer,
        "routing/route",
        _("Route"),
        form=form,
        answer=route,
        problem=problem,
        people=[
            (each.name or each.id, f"?{urlencode({'to': each.id, **query})}")
            for each in (contacts if route is None else [])
        ],
        back=lanes.url(viewer),
    )


def _ask(viewer: Viewer, form: RouteForm) -> tuple[list[ContactRecord], PersonRoute | None]:
    """Return the people that were found, and the answer if there is one recipient."""
    typed, requested = form.cleaned_data["to"], form.cleaned_data["channel"]
    category = form.cleaned_data["category"]
    contacts = people.find(viewer.organization_id, typed, limit=LIMIT)
    kind, address = _address(viewer, typed)
    contact = contacts[0] if len(contacts) == 1 or (contacts and address) else None
    if contact is None and address is None:
        return contacts, None
    channel = Channel(requested) if requested else kind or _best(viewer, contact or NOBODY)
    if address is None or channel is not kind:
        address = compose.address_of(contact or NOBODY, channel)
    return contacts, answer(viewer, contact or NOBODY, channel, address, category)


def _address(viewer: Viewer, typed: str) -> tuple[Channel | None, str | None]:
    """Return the channel and the normal form of what was typed, if it is an address."""
    if email := addresses.email(typed):
        return Channel.EMAIL, email
    if any(each.isdigit() for each in typed) and (
        phone := addresses.phone(typed, viewer.organization.region)
    ):
        return Channel.SMS, phone
    return None, None


def _best(viewer: Viewer, contact: ContactRecord) -> Channel:
    """Return the first channel on which a person has an address."""
    channels = (Channel.EMAIL, Channel.SMS)
    return next((each for each in channels if compose.address_of(contact, each)), Channel.PUSH)


def answer(
    viewer: Viewer, contact: ContactRecord, channel: Channel, address: str | None, category: str
) -> PersonRoute:
    """Return what would happen to a message to a person, or to an address that no contact has."""
    organization_id = viewer.organization_id
    devices = (
        active_devices(organization_id, [contact.id]).get(contact.id, ()) if contact.id else ()
    )
    kinds = frozenset((each.platform, each.app) for each in devices)
    steps = accounts.explain(
        organization_policy.of(organization_id), channel, address, devices=kinds
    )
    is_there = bool(kinds) if channel is Channel.PUSH else bool(address)
    reach = (
        reachability.of_category(viewer, contact, channel, address, category) if is_there else None
    )
    sentence, is_sent = _sentence(channel, category, steps, reach)
    return PersonRoute(
        whom=viewer.shown(address) or contact.name or contact.id,
        person_url=explanations.person_url(viewer, contact.id) if contact.id else "",
        channel=wording.channel(channel),
        sentence=sentence,
        is_sent=is_sent,
        lines=[_line(viewer, each) for each in steps],
    )


def _sentence(
    channel: Channel, category: str, steps: Sequence[RouteStep], reach: CategoryReach | None
) -> tuple[str, bool]:
    """Return what would happen in one sentence, and whether the message would be sent."""
    subject = {
        "category": wording.category_noun(category),
        "channel": wording.channel_noun(channel),
    }
    if reach is None:
        text = _("Not sent as %(category)s %(channel)s: there is no address or device for it.")
        return text % subject, False
    if not reach.reached:
        text = _("Not sent as %(category)s %(channel)s: %(reason)s.")
        return text % {**subject, "reason": reach.refusal}, False
    first = [each.account.name for each in steps if each.answer is RouteAnswer.FIRST]
    if not first:
        if any(each.answer is RouteAnswer.PAUSED for each in steps):
            text = _("Not sent now: %(category)s %(channel)s waits for a paused account.")
        else:
            text = _("Not sent: no account takes %(category)s %(channel)s for this recipient.")
        return text % subject, False
    subject["accounts"] = get_text_list(first, _("or"))
    if reach.wait_reason:
        text = _("Sent by %(accounts)s as %(category)s %(channel)s, after a wait: %(reason)s.")
        return text % {**subject, "reason": reach.wait_reason}, True
    return _("Sent by %(accounts)s as %(category)s %(channel)s.") % subject, True


def _line(viewer: Viewer, step: RouteStep) -> RouteLine:
    reason, colour = WHY[step.answer]
    words = str(reason)
    account = step.account
    if 0 < step.share < 1:
        words = _("Sends %(share)s of these messages") % {"share": f"{step.share:.0%}"}
    return RouteLine(
        name=account.name,
        url=reverse("console:provider", args=[viewer.organization_id, account.id])
        if account.id is not None
        else "",
        words=words,
        colour=colour,
        takes=", ".join(account.match) or _("All"),
    )
