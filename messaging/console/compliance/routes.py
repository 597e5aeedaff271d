"""The paths of consent and compliance, of which `messaging.console.urls` is made up."""

from django.urls import URLPattern, path

from messaging.console import access
from messaging.console.compliance import consent_list, ledger_page, request_list, request_page
from rme.tenants.access.roles import Permission

_CONSENT, _PRIVACY = "<str:organization_id>/consent/", "<str:organization_id>/privacy/"
_REQUEST = f"{_PRIVACY}<uuid:request_id>/"

ROUTES: list[URLPattern] = [
    path("consent/", access.first("consent", Permission.SEE_PEOPLE), name="first_consent"),
    path("privacy/", access.first("privacy", Permission.SEE_PEOPLE), name="first_privacy"),
    path(_CONSENT, consent_list.show, name="consent"),
    path(f"{_CONSENT}<uuid:entry_id>/", consent_list.show_one, name="consent_entry"),
    path(f"{_CONSENT}ledger/", ledger_page.show, name="ledger"),
    path(f"{_CONSENT}ledger/export/", ledger_page.export, name="ledger_export"),
    path(_PRIVACY, request_list.show, name="privacy"),
    path(f"{_PRIVACY}new/", request_list.new, name="privacy_new"),
    path(_REQUEST, request_page.show, name="privacy_request"),
    path(f"{_REQUEST}file/", request_page.download, name="privacy_file"),
]
