"""What a person can do from the search: each command leads to the page where it is done."""

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as N_

from messaging import providers
from rme.crm import platforms
from rme.sidebar.kinds import PageLink
from rme.tenants.access.roles import Permission

P = Permission


@dataclass(frozen=True, slots=True)
class Command:
    """Something to do, and the page where it is done."""

    title: str
    permission: Permission | None
    route: str
    arguments: tuple[str, ...] = ()
    """What the route takes after the organization."""
    query: tuple[tuple[str, str], ...] = ()
    is_of_embedded: bool = False
    """Whether contacts have to be stored here."""

    def url(self, organization_id: str) -> str:
        """Return the address of the page in an organization."""
        if self.route.startswith("console:"):
            url = reverse(self.route, args=[organization_id, *self.arguments])
        else:
            url = reverse(self.route)
        return f"{url}?{urlencode(self.query)}" if self.query else url


_PAUSES = (
    (N_("Pause email"), "EMAIL"),
    (N_("Pause SMS"), "SMS"),
    (N_("Pause push"), "PUSH"),
)
COMMANDS = (
    Command(N_("New template"), P.CHANGE_TEMPLATES, "console:template_new"),
    Command(N_("Import templates"), P.CHANGE_TEMPLATES, "console:template_import"),
    Command(N_("New partial"), P.CHANGE_TEMPLATES, "console:partials", query=(("new", "1"),)),
    Command(
        N_("Show failed messages"),
        *(P.SEE_MESSAGES, "console:messages"),
        query=(("status", "FAILED"), ("period", "24")),
    ),
    Command(
        N_("Show scheduled messages"),
        *(P.SEE_MESSAGES, "console:messages"),
        query=(("status", "SCHEDULED"),),
    ),
    Command(
        N_("Review messages with an unknown outcome"),
        *(P.OPERATE, "console:messages"),
        query=(("status", "HELD"),),
    ),
    *(
        Command(title, P.OPERATE, "console:pause", query=(("channel", channel),))
        for title, channel in _PAUSES
    ),
    Command(N_("Pause all sending"), P.OPERATE, "console:pause"),
    Command(N_("Show the route to a person"), P.SEE_SETTINGS, "console:route"),
    Command(N_("Add a contact"), P.CHANGE_PEOPLE, "console:contact_new", is_of_embedded=True),
    Command(
        N_("Import contacts"),
        *(P.CHANGE_PEOPLE, "admin:crm_contact_new_import"),
        is_of_embedded=True,
    ),
    Command(N_("Add a suppression"), P.CHANGE_PEOPLE, "console:suppression_new"),
    Command(N_("Import suppressions"), P.CHANGE_PEOPLE, "admin:messaging_suppression_new_import"),
    Command(N_("New privacy request"), P.CHANGE_PEOPLE, "console:privacy_new"),
    Command(N_("Add a sender domain"), P.CHANGE_SETTINGS, "console:new_domain"),
    Command(N_("Add a webhook endpoint"), P.CHANGE_WEBHOOKS, "console:new_webhook"),
    Command(N_("New application"), P.CHANGE_KEYS, "console:programs", query=(("new", "1"),)),
    Command(N_("Add an API key"), P.CHANGE_KEYS, "admin:tenants_apikey_add"),
    Command(N_("Invite somebody"), P.GRANT_ROLES, "console:team", query=(("invite", "1"),)),
    Command(N_("Change your profile"), None, "profile"),
    Command(N_("Set up a second factor"), None, "mfa_index"),
    Command(N_("Show your sessions"), None, "usersessions_list"),
    Command(N_("Change your password"), None, "admin:password_change"),
)


def commands(organization_id: str, permissions: frozenset[Permission]) -> Iterator[PageLink]:
    """Yield what somebody with these permissions may do in an organization."""
    is_embedded = platforms.get(organization_id).kind == platforms.EMBEDDED
    for command in COMMANDS:
        is_allowed = command.permission is None or command.permission in permissions
        if is_allowed and (is_embedded or not command.is_of_embedded):
            yield PageLink(_(command.title), command.url(organization_id))
    if P.CHANGE_SETTINGS in permissions:
        for kind, provider in providers.REGISTRY.items():
            url = reverse("console:new_provider", args=[organization_id, kind])
            yield PageLink(_("Add {provider}").format(provider=provider.label), url)
