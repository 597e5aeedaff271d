"""The rights to change data that live mail uses at once, by model and field.

The pages ask this table. A test enumerates the forms of all pages: add new fields here.
"""

from collections.abc import Mapping

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
    "messaging.Pause": Permission.OPERATE,
    "messaging.SendingRules": Permission.CHANGE_SETTINGS,
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
}
"""Fields that need another right once live mail uses them."""
