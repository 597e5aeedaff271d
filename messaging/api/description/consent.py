"""The calls for consent, described."""

from drf_spectacular.utils import extend_schema

from messaging.api.description.common import WITH_BODY, Decorator, query, responses
from messaging.api.outputs import consent as outputs
from messaging.consent.entry_inputs import ConsentBody, ConsentQuery
from rme.core import errors


def records() -> Decorator:
    return extend_schema(
        operation_id="record_consent",
        summary="Record what one person decided, or up to 500 decisions",
        request={"application/json": ConsentBody},
        responses=responses({201: outputs.ConsentAnswer}, (*WITH_BODY, errors.NotFound)),
    )


def lists() -> Decorator:
    return extend_schema(
        operation_id="list_consent",
        summary="Read the consent ledger, newest first",
        description="Without `history`: for each contact, channel and category the entry that "
        "decides now. With it: every entry.",
        parameters=query(ConsentQuery),
        responses=responses({200: outputs.ConsentPageOutput}, ()),
    )
