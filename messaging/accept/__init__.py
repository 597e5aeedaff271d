"""A request becomes rows: planning, dry run, idempotency, cancelling and waiting.

Other packages use the names below, and the modules `requests` (the schemas of what callers send),
`results` (what they get), `idempotency` (keys of requests), `dry_run`, `cancel` and `waiting`.
"""

from messaging.accept.acceptance import RECIPIENTS_LIMIT, Submission, accept, accept_bulk
from messaging.accept.programmatic import MessageResult, send, send_push

__all__ = [
    "RECIPIENTS_LIMIT",
    "MessageResult",
    "Submission",
    "accept",
    "accept_bulk",
    "send",
    "send_push",
]
