"""The rights to change data that live mail uses at once, by model and field.

The pages ask this table. A template's draft has no effect until somebody activates it, so its texts
only need the right to write drafts. A test enumerates the forms of all pages: add new fields here.
"""

from collections.abc import Mapping

from django.db.models import Q

from messaging.models import Template, TemplateVersion
from rme.tenants.access.roles import Permission

MODEL_RIGHTS: Mapping[str, Permission] = {
    "bot.BotSettings": Permission.CHANGE_SETTINGS,
    "crm.Account": Permission.CHANGE_PEOPLE,
    "crm.Case": Permission.CHANGE_PEOPLE,
    "crm.Event": Permission.CHANGE_PEOPLE,
    "crm.EventRegistration": Permission.CHANGE_PEOPLE,
    "crm.Exhibitor": Permission.CHANGE_PEOPLE,
    "crm.Platform": Permission.CHANGE_SETTINGS,
    "crm.Speaker": Permission.CHANGE_PEOPLE,
    "messaging.Category": Permission.OPERATE,
    "messaging.Partial": Permission.CHANGE_TEMPLATES,
    "messaging.Pause": Permission.OPERATE,
    "messaging.SendingRules": Permission.CHANGE_SETTINGS,
    "messaging.Template": Permission.CHANGE_TEMPLATES,
    "messaging.TemplateVersion": Permission.CHANGE_TEMPLATES,
    "push.Device": Permission.CHANGE_PEOPLE,
    "tenants.ApiKey": Permission.CHANGE_KEYS,
    "tenants.Application": Permission.CHANGE_KEYS,
    "tenants.Invitation": Permission.GRANT_ROLES,
    "tenants.Membership": Permission.GRANT_ROLES,
    "tenants.Organization": Permission.GRANT_ROLES,
}
"""The right to change a row of a model at all."""
FIELD_RIGHTS: Mapping[str, Permission] = {
    "messaging.Category.accept_effect": Permission.CHANGE_SETTINGS,
    "messaging.Category.regime": Permission.CHANGE_SETTINGS,  # opt-out needs nobody's consent
    "messaging.Template.category": Permission.PUBLISH_TEMPLATES,
}
"""Fields that need another right once live mail uses them."""
DRAFTED: frozenset[str] = frozenset({"messaging.Partial", "messaging.TemplateVersion"})
"""Models whose pages only change drafts."""


def is_committed(template: Template) -> bool:
    """Return whether a template sends, or will without another review: a version is active,
    approved, or scheduled.
    """
    committed = Q(state=TemplateVersion.State.ACTIVE) | Q(publish_at__isnull=False)
    return template.versions.filter(committed | ~Q(approved_by="")).exists()
