"""The calls for suppressions, described."""

from drf_spectacular.utils import extend_schema

from messaging.api.description.common import WITH_BODY, Decorator, query, responses
from messaging.api.outputs import suppressions as outputs
from messaging.consent.suppression_inputs import LiftQuery, SuppressionBody, SuppressionsQuery
from rme.core import errors

LIFTING = (errors.NotFound, errors.SuppressionProtected)


def lists() -> Decorator:
    return extend_schema(
        operation_id="list_suppressions",
        summary="Query the suppressions, newest first",
        parameters=query(SuppressionsQuery),
        responses=responses({200: outputs.SuppressionListOutput}, ()),
    )


def adds() -> Decorator:
    return extend_schema(
        operation_id="add_suppressions",
        summary="Suppress an address or a contact, or up to 500",
        description="One entry that is there already answers 200, unchanged, save that a stronger "
        "reason (COMPLAINT, STOP, HARD_BOUNCE) replaces a weaker one. A `contactId` that the "
        "organization does not have is NOT_FOUND.",
        request={"application/json": SuppressionBody},
        responses=responses(
            {200: outputs.SuppressionOutput, 201: outputs.SuppressionAddedOutput},
            (*WITH_BODY, errors.NotFound),
        ),
    )


def lifts() -> Decorator:
    return extend_schema(
        operation_id="lift_suppression",
        summary="Lift a suppression that the query names",
        parameters=query(LiftQuery),
        responses=responses({204: None}, LIFTING),
    )


def lifts_by_id() -> Decorator:
    return extend_schema(
        operation_id="lift_suppression_by_id",
        summary="Lift a suppression",
        responses=responses({204: None}, LIFTING),
    )
