"""A request becomes rows in three steps: read the facts, decide, store.

Other packages use the names below, and the modules `requests` (the schemas of what callers send),
`results` (what they get), `idempotency` (keys of requests), `dry_run`, `cancel` and `waiting`.
"""

from messaging.accept.acceptance import RECIPIENTS_LIMIT, accept, accept_bulk
from messaging.accept.calls import Call, Submission
from messaging.accept.facts.variables import SlowCheck
from messaging.accept.grouping import accept_together, is_quick
from messaging.accept.programmatic import MessageResult, send, send_push

__all__ = [
    "RECIPIENTS_LIMIT",
    "Call",
    "MessageResult",
    "SlowCheck",
    "Submission",
    "accept",
    "accept_bulk",
    "accept_together",
    "is_quick",
    "send",
    "send_push",
]
