"""Every look-up that bots know, of one person and one account."""

from datetime import UTC, datetime

START = datetime(2026, 3, 4, 9, 30, tzinfo=UTC)

LOOK_UP_ACTIONS = (
    "Confirm_Contact", "Confirm_Contact_Phone", "Confirm_Case", "Confirm_Registration",
    "Confirm_Speaker", "Confirm_Exhibitor", "Confirm_Account",
)  # fmt: skip


def look_ups(ada, account):
    return {
        "Confirm_Contact": {"email": ada.email},
        "Confirm_Contact_Phone": {"phone": ada.mobile},
        "Confirm_Case": {"email": ada.email},
        "Confirm_Registration": {"email": ada.email},
        "Confirm_Speaker": {"contactID": str(ada.pk)},
        "Confirm_Exhibitor": {"contactID": str(ada.pk)},
        "Confirm_Account": {"accountName": account.name},
    }
