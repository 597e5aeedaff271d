"""Addresses of contacts, consent and suppressions in the admin, which lead to the console.

The pages of imports and exports are here.
"""

from django.contrib import admin

from messaging.admin.console_lists import InConsole
from messaging.admin.imports import ImportPages
from messaging.models import ConsentEntry, Suppression
from rme.crm.admin.pages import RecordAdmin
from rme.crm.models import Contact
from rme.tenants.access.roles import Permission


@admin.register(Contact)
class ContactAdmin(InConsole, RecordAdmin):
    console_list = "contacts"
    console_new = "contact_new"
    console_page = "person"
    # read by the forms of other records, which name a contact
    search_fields = ("first_name", "last_name", "email", "mobile", "phone", "id")


@admin.register(ConsentEntry)
class ConsentEntryAdmin(InConsole):
    read_permission: Permission = Permission.SEE_PEOPLE
    write_permission: Permission = Permission.CHANGE_PEOPLE
    console_list = "consent"
    console_new = "consent"  # where a person is searched first
    console_page = "consent_entry"


@admin.register(Suppression)
class SuppressionAdmin(InConsole, ImportPages):
    read_permission: Permission = Permission.SEE_PEOPLE
    write_permission: Permission = Permission.CHANGE_PEOPLE
    console_list = "suppressions"
    console_new = "suppression_new"
    console_page = "suppression"
