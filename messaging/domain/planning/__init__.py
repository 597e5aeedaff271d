"""The plan of a request to send: what goes to whom, when and by which channel; or why nothing does.

Three decisions, each on values alone: `outline` holds a request against its organization's policy,
`draft_each` finds each recipient's channels, texts and time, and `plan` chooses by gates, accounts
and what was promised before. `messaging.accept` reads the facts that they need.
"""

from messaging.domain.planning.decisions import CHOSEN, QUIET_HOURS, ChannelDecision
from messaging.domain.planning.drafts import (
    Draft,
    DraftRecipient,
    Option,
    PlannedContact,
    RequestFacts,
    draft_each,
)
from messaging.domain.planning.outlines import (
    Outline,
    RequestedRecipient,
    RequestedTemplate,
    SendingOrganization,
    SendRequest,
    Variables,
    outline,
)
from messaging.domain.planning.plans import (
    RATE_TOO_SLOW,
    OptionFacts,
    Plan,
    PlanFacts,
    Problems,
    RecipientPlan,
    plan,
)
from messaging.domain.planning.refusals import FieldProblem, RefusalCode, SendRefusal
from messaging.domain.planning.texts import ActiveVersion, languages, pick

__all__ = [
    "CHOSEN",
    "QUIET_HOURS",
    "RATE_TOO_SLOW",
    "ActiveVersion",
    "ChannelDecision",
    "Draft",
    "DraftRecipient",
    "FieldProblem",
    "Option",
    "OptionFacts",
    "Outline",
    "Plan",
    "PlanFacts",
    "PlannedContact",
    "Problems",
    "RecipientPlan",
    "RefusalCode",
    "RequestFacts",
    "RequestedRecipient",
    "RequestedTemplate",
    "SendRefusal",
    "SendRequest",
    "SendingOrganization",
    "Variables",
    "draft_each",
    "languages",
    "outline",
    "pick",
    "plan",
]
