"""The paths of people and suppressions, of which `messaging.console.urls` is made up."""

from django.urls import URLPattern, path

from messaging.console import access
from messaging.console.people import (
    contact_list,
    contact_pages,
    entries_in_test,
    person_page,
    suppression_pages,
)
from rme.tenants.access.roles import Permission

_CONTACTS = "<str:organization_id>/contacts/"
_SUPPRESSIONS = "<str:organization_id>/suppressions/"
_SUPPRESSION = f"{_SUPPRESSIONS}<uuid:suppression_id>/"

ROUTES: list[URLPattern] = [
    path("contacts/", access.first("contacts", Permission.SEE_PEOPLE), name="first_contacts"),
    path(
        "suppressions/",
        access.first("suppressions", Permission.SEE_PEOPLE),
        name="first_suppressions",
    ),
    path(_CONTACTS, contact_list.show, name="contacts"),
    path(f"{_CONTACTS}new/", contact_pages.edit, name="contact_new"),
    path(f"{_CONTACTS}delete/", contact_pages.delete, name="contacts_delete"),
    path(f"{_CONTACTS}merge/", contact_pages.merge, name="contacts_merge"),
    path(f"{_CONTACTS}<uuid:contact_id>/edit/", contact_pages.edit, name="contact_edit"),
    path("<str:organization_id>/people/<path:contact_id>/", person_page.show, name="person"),
    path(_SUPPRESSIONS, suppression_pages.show, name="suppressions"),
    path(f"{_SUPPRESSIONS}new/", suppression_pages.new, name="suppression_new"),
    path(_SUPPRESSION, suppression_pages.show_one, name="suppression"),
    path(f"{_SUPPRESSION}lift/", suppression_pages.lift, name="lift"),
    path("<str:organization_id>/test-entries/", entries_in_test.show, name="test_entries"),
]
