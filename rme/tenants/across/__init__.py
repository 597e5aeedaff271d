"""One person in several cells: whose organizations the console shows, and handing a log-in over.

An account has a `person`, by which the accounts of one person in several cells know each other. An
email address would not do: an owner may invite any address, and use the link of the invitation. So
accounts are connected once, by a log-in to both of them. `rme.urls` has `urls` and `calls`.
"""

from rme.tenants.across.calls import log_out_elsewhere
from rme.tenants.across.elsewhere import Elsewhere, organizations_elsewhere

__all__ = ["Elsewhere", "log_out_elsewhere", "organizations_elsewhere"]
