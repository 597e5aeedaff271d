"""The mappings of Odoo 19 without customization (see `rme.crm.presets`)."""

from typing import Any

Mapping = dict[str, Any]

_EVENT: Mapping = {
    "event_id": ["event_id"],
    "event_name": ["event_id"],
    "event_start": ["event_id.date_begin"],
}
ODOO: Mapping = {
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
            **_EVENT,
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
            **_EVENT,
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
            **_EVENT,
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

TASKS: Mapping = {
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
"""Cases as project tasks, for Odoo's free edition, which has no help desk."""
