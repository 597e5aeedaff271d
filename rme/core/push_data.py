"""The keys of a push's `data` that Firebase Cloud Messaging reserves.

rme accepts a message before it knows the devices that it reaches, so these keys count for all.
"""

import re

# https://firebase.google.com/docs/reference/fcm/rest/v1/projects.messages (`data`)
RESERVED = r"(from|message_type)$|(google|gcm)\."
_RESERVED = re.compile(RESERVED)
REASON = "is reserved by Firebase Cloud Messaging: rename it"


def is_reserved(key: str) -> bool:
    """Return whether Firebase refuses a push with this key."""
    return _RESERVED.match(key) is not None
