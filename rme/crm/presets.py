"""Mappings to begin with, for the platforms as they come. The form checks them like any other."""

from typing import Any

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

_ODOO_EVENT: _Kind = {
    "event_id": ["event_id"],
    "event_name": ["event_id"],
    "event_start": ["event_id.date_begin"],
}
_ODOO: _Kind = {
    "Account": {
        "object": "res.partner",
        "fields": {"name": ["name"], "phone": ["phone"], "website": ["website"]},
        "filter": [["is_company", "=", True]],
    },
    "Contact": {
        "object": "res.partner",
        "fields": {
            "name": ["name"],
            "email": ["email"],
            "find_email": ["email_normalized"],
            "mobile": ["phone_sanitized", "phone"],
            "phone": ["phone"],
            "phones": ["phone_sanitized", "phone"],
            "language": ["lang"],
            "zone": ["tz"],
            "account_id": ["parent_id"],
            "account_name": ["parent_id"],
        },
        "filter": [["is_company", "=", False]],
    },
    "Case": {
        "object": "helpdesk.ticket",
        "fields": {
            "number": ["ticket_ref"],
            "subject": ["name"],
            "issue": ["description"],
            "status": ["stage_id"],
            "priority": ["priority"],
            "is_closed": ["stage_id.fold"],
            "contact_id": ["partner_id"],
            "contact_email": ["partner_email", "partner_id.email"],
            "find_contact_email": ["partner_id.email_normalized"],
            "account_id": ["partner_id.commercial_partner_id"],
        },
        "values": {"priority": {"0": "Low", "1": "Medium", "2": "High", "3": "Urgent"}},
    },
    "Event": {
        "object": "event.event",
        "fields": {"name": ["name"], "starts_at": ["date_begin"], "ends_at": ["date_end"]},
    },
    "EventRegistration": {
        "object": "event.registration",
        "fields": {
            **_ODOO_EVENT,
            "contact_id": ["partner_id"],
            "name": ["name"],
            "email": ["email"],
            "find_email": ["email", "partner_id.email_normalized"],
            "contact_email": ["partner_id.email"],
            "status": ["state"],
            "is_registered": ["state"],
            "attended": ["state"],
            "ticket_type": ["event_ticket_id"],
        },
        "values": {
            "status": {
                "draft": "Unconfirmed",
                "open": "Registered",
                "done": "Attended",
                "cancel": "Cancelled",
            },
            "is_registered": {"open": True, "done": True, "*": False},
            "attended": {"done": True, "*": False},
        },
    },
    "Speaker": {
        "object": "event.track",
        "fields": {
            **_ODOO_EVENT,
            "contact_id": ["partner_id"],
            "name": ["partner_name", "partner_id"],
            "email": ["partner_email", "contact_email"],
            "session_title": ["name"],
            "session_start": ["date"],
            "room": ["location_id"],
            "status": ["stage_id"],
        },
    },
    "Exhibitor": {
        "object": "event.sponsor",
        "fields": {
            **_ODOO_EVENT,
            "account_id": ["partner_id.commercial_partner_id"],
            "account_name": ["partner_id.commercial_partner_id"],
            "contact_id": ["partner_id"],
            # a company's booth is its people's too
            "find_contact_id": ["partner_id", "partner_id.child_ids"],
            "level": ["sponsor_type_id"],
            "status": ["exhibitor_type"],
        },
    },
}

_ODOO_TASKS: _Kind = {
    "object": "project.task",
    "fields": {
        "number": ["id"],
        "subject": ["name"],
        "issue": ["description"],
        # tasks outside of projects have no stage
        "status": ["stage_id", "state"],
        "priority": ["priority"],
        "is_closed": ["state"],
        "contact_id": ["partner_id"],
        "contact_email": ["partner_id.email"],
        "find_contact_email": ["partner_id.email_normalized"],
        "account_id": ["partner_id.commercial_partner_id"],
    },
    "values": {
        "status": {
            "01_in_progress": "In Progress",
            "02_changes_requested": "Changes Requested",
            "03_approved": "Approved",
            "04_waiting_normal": "Waiting",
            "1_done": "Done",
            "1_canceled": "Cancelled",
        },
        "priority": {"0": "Low", "1": "Medium", "2": "High", "3": "Urgent"},
        "is_closed": {"1_done": True, "1_canceled": True, "*": False},
    },
}
"""Cases where there is no help desk, which Odoo's free edition lacks."""

PRESETS: dict[str, tuple[str, str, _Kind]] = {
    "salesforce": ("salesforce", "Salesforce", {**_SALESFORCE, **_CAMPAIGNS}),
    "salesforce-blackthorn": (
        "salesforce",
        "Salesforce + Blackthorn Events",
        {**_SALESFORCE, **_BLACKTHORN},
    ),
    "salesforce-fonteva": ("salesforce", "Salesforce + Fonteva", {**_SALESFORCE, **_FONTEVA}),
    "odoo": ("odoo", "Odoo 19 with Helpdesk", _ODOO),
    "odoo-community": (
        "odoo",
        "Odoo 19 without Helpdesk: cases are project tasks",
        {**_ODOO, "Case": _ODOO_TASKS},
    ),
}
"""By name: the platform, what people call it, and the mapping."""
