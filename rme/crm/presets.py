"""Ready-made mappings for platforms without customization. The form checks them like any other."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from rme.crm.presets_odoo import ODOO, TASKS

_Kind = dict[str, Any]

_ACCOUNT: _Kind = {
    "object": "Account",
    "fields": {"name": ["Name"], "phone": ["Phone"], "website": ["Website"]},
}
_PHONES = ["MobilePhone", "Phone", "HomePhone", "OtherPhone"]
_CONTACT: _Kind = {
    "object": "Contact",
    "fields": {
        "first_name": ["FirstName"],
        "last_name": ["LastName"],
        "email": ["Email"],
        "mobile": ["MobilePhone"],
        "phone": ["Phone", "MobilePhone", "HomePhone", "OtherPhone"],
        "phones": _PHONES,
        "account_id": ["AccountId"],
        "account_name": ["Account.Name"],
    },
}
_CASE: _Kind = {
    "object": "Case",
    "fields": {
        "number": ["CaseNumber"],
        "subject": ["Subject"],
        "issue": ["Description"],
        "status": ["Status"],
        "priority": ["Priority"],
        "is_closed": ["IsClosed"],
        "contact_id": ["ContactId"],
        "contact_email": ["Contact.Email"],
        "account_id": ["AccountId"],
    },
}
_SALESFORCE: _Kind = {"Account": _ACCOUNT, "Contact": _CONTACT, "Case": _CASE}

_CAMPAIGNS: _Kind = {
    "Event": {
        "object": "Campaign",
        "fields": {"name": ["Name"], "starts_at": ["StartDate"], "ends_at": ["EndDate"]},
    },
    "EventRegistration": {
        "object": "CampaignMember",
        "fields": {
            "event_id": ["CampaignId"],
            "event_name": ["Campaign.Name"],
            "event_start": ["Campaign.StartDate"],
            "contact_id": ["ContactId"],
            "name": ["Name"],
            "email": ["Email"],
            "find_email": ["Email", "Contact.Email"],
            "contact_email": ["Contact.Email"],
            "status": ["Status"],
            "is_registered": ["Status"],
            "attended": ["Status"],
        },
        "values": {
            "is_registered": {"Cancelled": False, "Canceled": False, "Declined": False, "*": True},
            "attended": {"Attended": True, "*": False},
        },
    },
}

_BT = "conference360__"
_BLACKTHORN: _Kind = {
    "Event": {
        "object": f"{_BT}Event__c",
        "fields": {
            "name": ["Name"],
            "starts_at": [f"{_BT}Event_Start_Date__c"],
            "ends_at": [f"{_BT}Event_End_Date__c"],
        },
    },
    "EventRegistration": {
        "object": f"{_BT}Attendee__c",
        "fields": {
            "event_id": [f"{_BT}Event__c"],
            "event_name": [f"{_BT}Event__r.Name"],
            "event_start": [f"{_BT}Event__r.{_BT}Event_Start_Date__c"],
            "contact_id": [f"{_BT}Contact__c"],
            "name": [f"{_BT}Attendee_Full_Name__c", "Name"],
            "email": [f"{_BT}Email2__c"],
            "find_email": [f"{_BT}Email2__c", f"{_BT}Contact__r.Email"],
            "contact_email": [f"{_BT}Contact__r.Email"],
            "status": [f"{_BT}Registration_Status__c"],
            "is_registered": [f"{_BT}Registration_Status__c"],
            "attended": [f"{_BT}Attendance_Status__c"],
            "ticket_type": [f"{_BT}Event_Item__r.Name"],
        },
        "values": {
            "is_registered": {"Registered": True, "*": False},
            "attended": {"Attended": True, "*": False},
        },
    },
    "Speaker": {
        "object": f"{_BT}Session_Speaker__c",
        "fields": {
            "event_id": [f"{_BT}Session__r.{_BT}Event__c"],
            "event_name": [f"{_BT}Session__r.{_BT}Event__r.Name"],
            "event_start": [f"{_BT}Session__r.{_BT}Event__r.{_BT}Event_Start_Date__c"],
            "contact_id": [f"{_BT}Speaker__r.{_BT}Contact__c"],
            "name": [f"{_BT}Speaker__r.Name"],
            "email": [f"{_BT}Speaker__r.{_BT}Contact__r.Email"],
            "session_title": [f"{_BT}Session__r.Name"],
        },
    },
    "Exhibitor": {
        "object": f"{_BT}Sponsor__c",
        "fields": {
            "event_id": [f"{_BT}Event__c"],
            "event_name": [f"{_BT}Event__r.Name"],
            "event_start": [f"{_BT}Event__r.{_BT}Event_Start_Date__c"],
            "account_id": [f"{_BT}Account__c"],
            "account_name": [f"{_BT}Account__r.Name"],
            "contact_id": [f"{_BT}Contact__c"],
            "level": [f"{_BT}Sponsorship_Level__c"],
        },
    },
}

_FO = "EventApi__"
_FONTEVA: _Kind = {
    "Event": {
        "object": f"{_FO}Event__c",
        "fields": {
            "name": [f"{_FO}Display_Name__c", "Name"],
            "starts_at": [f"{_FO}Start_Date_Time__c"],
            "ends_at": [f"{_FO}End_Date_Time__c"],
        },
    },
    "EventRegistration": {
        "object": f"{_FO}Attendee__c",
        "fields": {
            "event_id": [f"{_FO}Attendee_Event__c"],
            "event_name": [f"{_FO}Attendee_Event__r.{_FO}Display_Name__c"],
            "event_start": [f"{_FO}Attendee_Event__r.{_FO}Start_Date_Time__c"],
            "contact_id": [f"{_FO}Contact__c"],
            "name": [f"{_FO}Full_Name__c", "Name"],
            "email": [f"{_FO}Preferred_Email__c", f"{_FO}Email__c"],
            "find_email": [f"{_FO}Preferred_Email__c", f"{_FO}Email__c", f"{_FO}Contact__r.Email"],
            "contact_email": [f"{_FO}Contact__r.Email"],
            "status": [f"{_FO}Status__c"],
            "is_registered": [f"{_FO}Status__c"],
            "attended": [f"{_FO}Status__c"],
            "ticket_type": [f"{_FO}Ticket_Type__r.Name"],
        },
        "values": {
            "is_registered": {"Registered": True, "Attended": True, "*": False},
            "attended": {"Attended": True, "*": False},
        },
    },
    "Speaker": {
        "object": f"{_FO}Speaker__c",
        "fields": {
            "event_id": [f"{_FO}Event__c"],
            "event_name": [f"{_FO}Event__r.{_FO}Display_Name__c"],
            "event_start": [f"{_FO}Event__r.{_FO}Start_Date_Time__c"],
            "contact_id": [f"{_FO}Contact__c"],
            "name": ["Name"],
            "email": [f"{_FO}Contact__r.Email"],
            "status": [f"{_FO}Status__c"],
        },
    },
    "Exhibitor": {
        "object": f"{_FO}Sponsor__c",
        "fields": {
            "event_id": [f"{_FO}Event__c"],
            "event_name": [f"{_FO}Event__r.{_FO}Display_Name__c"],
            "event_start": [f"{_FO}Event__r.{_FO}Start_Date_Time__c"],
            "account_id": [f"{_FO}Account__c"],
            "account_name": [f"{_FO}Account__r.Name"],
            "contact_id": [f"{_FO}Contact__c"],
        },
    },
}


@dataclass(frozen=True, slots=True)
class Preset:
    """A ready-made mapping: the platform's kind, a label for people, and the mapping as JSON."""

    kind: str
    label: Any
    mapping: dict[str, Any]


PRESETS: dict[str, Preset] = {
    "salesforce": Preset("salesforce", "Salesforce", {**_SALESFORCE, **_CAMPAIGNS}),
    "salesforce-blackthorn": Preset(
        "salesforce", "Salesforce + Blackthorn Events", {**_SALESFORCE, **_BLACKTHORN}
    ),
    "salesforce-fonteva": Preset("salesforce", "Salesforce + Fonteva", {**_SALESFORCE, **_FONTEVA}),
    "odoo": Preset("odoo", "Odoo 19 with Helpdesk", ODOO),
    "odoo-community": Preset(
        "odoo", _("Odoo 19 without Helpdesk: cases are project tasks"), {**ODOO, "Case": TASKS}
    ),
}
