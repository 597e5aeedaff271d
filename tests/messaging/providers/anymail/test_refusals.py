"""Email services: what their answers mean."""

import pytest

from messaging.providers.anymail.services import ServiceName
from rme.core.outcomes import Accepted, Rejected, Retryable, Unknown
from rme.transport import Transport
from tests.messaging.providers.accounts import (
    CONTENT,
    DEAD,
    ELSEWHERE,
    LATER,
    MESSAGE_LATER,
    RECIPIENT,
    SET_UP,
    kind_of,
)
from tests.messaging.providers.anymail.scene import NAMES, ask

NOBODY_KNOWS = (Unknown,)


@pytest.mark.parametrize(
    ("service", "status", "body", "expected"),
    [
        ("brevo", 400, b'{"code":"invalid_parameter","message":"email is not valid in to"}', DEAD),
        (
            "brevo",
            400,
            b'{"code":"invalid_parameter","message":"sender is not valid"}',
            MESSAGE_LATER,
        ),
        (
            "brevo",
            400,
            b'{"code":"invalid_parameter","message":"name is not valid in to"}',
            CONTENT,
        ),
        ("brevo", 400, b'{"code":"not_enough_credits","message":"no credits"}', SET_UP),
        ("brevo", 400, b'{"code":"missing_parameter","message":"htmlContent"}', CONTENT),
        ("mailersend", 422, b'{"message":"x","errors":{"to.0.email":["must be valid"]}}', DEAD),
        ("mailersend", 422, b'{"errors":{"from.email":["verified. #MS42207"]}}', MESSAGE_LATER),
        ("mailersend", 422, b'{"errors":{"subject":["is required"]}}', CONTENT),
        (
            "mailersend",
            202,
            b'{"message":"m","warnings":[{"type":"ALL_SUPPRESSED","recipients":'
            b'[{"email":"to@x.test","name":"","reasons":["hard_bounced"]}]}]}',
            RECIPIENT,
        ),
        ("mailgun", 400, b'{"message":"to parameter is not a valid address. check"}', DEAD),
        ("mailgun", 400, b'{"message":"from parameter is not a valid address"}', ELSEWHERE),
        ("mailgun", 400, b'{"message":"Sandbox subdomains are for test purposes"}', ELSEWHERE),
        ("mailgun", 404, b'{"message":"Domain not found: y.test"}', MESSAGE_LATER),
        ("mailgun", 200, b"Mailgun Magnificent API", NOBODY_KNOWS),
        (
            "mailjet",
            400,
            b'{"Messages":[{"Status":"error","Errors":[{"ErrorCode":"mj-0013",'
            b'"ErrorRelatedTo":["To[0].Email"],"ErrorMessage":"\\"x\\" is invalid"}]}]}',
            DEAD,
        ),
        (
            "mailjet",
            403,
            b'{"Messages":[{"Errors":[{"ErrorCode":"send-0008","ErrorRelatedTo":["From"]}]}]}',
            MESSAGE_LATER,
        ),
        ("mailjet", 400, b'{"Messages":[{"Errors":[{"ErrorCode":"send-0003"}]}]}', CONTENT),
        ("mailtrap", 400, b'{"success":false,"errors":["\'to\' address is invalid"]}', DEAD),
        ("mailtrap", 400, b'{"errors":["\'subject\' is required"]}', CONTENT),
        ("mailtrap", 401, b'{"errors":["Unauthorized"]}', SET_UP),
        ("mandrill", 500, b'{"status":"error","code":-1,"name":"Invalid_Key"}', SET_UP),
        ("mandrill", 500, b'{"status":"error","code":-2,"name":"ValidationError"}', CONTENT),
        ("mandrill", 500, b'{"status":"error","name":"GeneralError"}', NOBODY_KNOWS),
        ("mandrill", 200, b'[{"email":"to@x.test","status":"invalid"}]', DEAD),
        (
            "mandrill",
            200,
            b'[{"email":"to@x.test","status":"rejected","reject_reason":"unsigned"}]',
            MESSAGE_LATER,
        ),
        (
            "mandrill",
            200,
            b'[{"email":"to@x.test","status":"rejected","reject_reason":"hard-bounce"}]',
            RECIPIENT,
        ),
        ("postal", 200, b'{"status":"error","data":{"code":"InvalidServerAPIKey"}}', SET_UP),
        (
            "postal",
            200,
            b'{"status":"error","data":{"code":"UnauthenticatedFromAddress"}}',
            MESSAGE_LATER,
        ),
        ("postal", 200, b'{"status":"parameter-error","data":{}}', CONTENT),
        ("postmark", 422, b'{"ErrorCode":406,"Message":"Found inactive addresses"}', RECIPIENT),
        ("postmark", 422, b'{"ErrorCode":300,"Message":"Invalid \'To\' address"}', DEAD),
        ("postmark", 422, b'{"ErrorCode":300,"Message":"Invalid \'From\' address"}', ELSEWHERE),
        ("postmark", 422, b'{"ErrorCode":300,"Message":"Provide either email"}', CONTENT),
        ("postmark", 422, b'{"ErrorCode":405,"Message":"out of credits"}', SET_UP),
        ("postmark", 422, b'{"ErrorCode":4059,"Message":"x"}', CONTENT),
        ("postmark", 401, b'{"ErrorCode":10,"Message":"token"}', SET_UP),
        ("postmark", 503, b'{"ErrorCode":100,"Message":"Maintenance"}', LATER),
        ("resend", 422, b'{"name":"validation_error","message":"Invalid `to` field."}', DEAD),
        ("resend", 422, b'{"name":"invalid_from_address","message":"x"}', ELSEWHERE),
        (
            "resend",
            403,
            b'{"name":"validation_error","message":"The y.test domain is not verified"}',
            MESSAGE_LATER,
        ),
        ("resend", 429, b'{"name":"daily_quota_exceeded"}', LATER),
        ("resend", 409, b'{"name":"concurrent_idempotent_requests"}', NOBODY_KNOWS),
        ("scaleway", 403, b'{"type":"permissions_denied"}', SET_UP),
        (
            "scaleway",
            403,
            b'{"type":"permissions_denied","details":[{"resource":"email","action":"write"}]}',
            SET_UP,
        ),
        ("scaleway", 403, b'{"message":"domain y.test is not checked"}', MESSAGE_LATER),
        ("scaleway", 404, b'{"type":"not_found","resource":"domain"}', MESSAGE_LATER),
        ("scaleway", 404, b'{"type":"not_found","resource":"project"}', SET_UP),
        (
            "scaleway",
            412,
            b'{"type":"precondition_failed","help_message":"the domain is not verified"}',
            MESSAGE_LATER,
        ),
        ("sendgrid", 400, b'{"errors":[{"field":"personalizations.0.to.0.email"}]}', DEAD),
        ("sendgrid", 400, b'{"errors":[{"field":"personalizations.0.to.0.name"}]}', CONTENT),
        ("sendgrid", 400, b'{"errors":[{"field":"from.email","message":"x"}]}', MESSAGE_LATER),
        ("sendgrid", 400, b'{"errors":[{"field":"subject"}]}', CONTENT),
        ("sendgrid", 413, b"", CONTENT),
        ("sparkpost", 400, b'{"errors":[{"message":"At least one","code":"5002"}]}', DEAD),
        (
            "sparkpost",
            400,
            b'{"errors":[{"message":"Invalid domain","code":"7001"}]}',
            MESSAGE_LATER,
        ),
        ("sparkpost", 422, b'{"errors":[{"message":"required field","code":"1400"}]}', CONTENT),
        ("sparkpost", 420, b'{"errors":[{"message":"Exceed Sending Limit"}]}', LATER),
        (
            "sparkpost",
            200,
            b'{"results":{"total_rejected_recipients":1,"total_accepted_recipients":0,"id":"1"}}',
            RECIPIENT,
        ),
        ("unisender_go", 400, b'{"status":"error","code":102,"message":"key"}', SET_UP),
        ("unisender_go", 400, b'{"status":"error","code":103,"message":"key"}', SET_UP),
        ("unisender_go", 400, b'{"status":"error","code":114,"message":"key"}', SET_UP),
        ("unisender_go", 400, b'{"status":"error","code":204,"message":"x"}', MESSAGE_LATER),
        ("unisender_go", 400, b'{"status":"error","code":205,"message":"x"}', MESSAGE_LATER),
        ("unisender_go", 400, b'{"status":"error","code":2045,"message":"x"}', CONTENT),
        (
            "unisender_go",
            200,
            b'{"job_id":"1","emails":[],"failed_emails":{"to@x.test":"invalid"}}',
            DEAD,
        ),
    ],
)
def test_refusals(
    transport: Transport, service: ServiceName, status: int, body: bytes, expected: object
) -> None:
    assert (
        kind_of(ask(transport, service, status, body, {"Content-Type": "application/json"})[0])
        == expected
    )


@pytest.mark.parametrize("service", NAMES)
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, b"", SET_UP),
        (402, b"", SET_UP),
        (403, b"{}", SET_UP),
        (404, b"<html>", SET_UP),
        (429, b"", LATER),
        (503, b"", LATER),
        (400, b"junk", CONTENT),
        (422, b"[[[[]]]]", CONTENT),
        (302, b"", NOBODY_KNOWS),
        (500, b"", NOBODY_KNOWS),
        (502, b"<html>", NOBODY_KNOWS),
    ],
)
def test_status_without_a_body_has_its_outcome(
    transport: Transport, service: ServiceName, status: int, body: bytes, expected: object
) -> None:
    assert kind_of(ask(transport, service, status, body)[0]) == expected


@pytest.mark.parametrize("service", sorted(set(NAMES) - {"sendgrid"}))
@pytest.mark.parametrize(
    "body", [b"junk", b"[]", b"{}", b"null", b"7", b'{"id": []', b"\xff\xfe", b'{"Messages": 7}']
)
def test_malformed_acceptance_is_not_accepted(
    transport: Transport, service: ServiceName, body: bytes
) -> None:
    outcome, _ = ask(transport, service, 200, body, {"Content-Type": "application/json"})
    assert not isinstance(outcome, Accepted)
    assert isinstance(outcome, Unknown | Rejected)


@pytest.mark.parametrize("service", NAMES)
def test_retry_after_is_read(transport: Transport, service: ServiceName) -> None:
    outcome, _ = ask(transport, service, 429, b"{}", {"Retry-After": "7"})
    assert isinstance(outcome, Retryable)
    assert outcome.retry_after == 7.0


def test_a_reason_names_the_code_and_no_address(transport: Transport) -> None:
    body = b'{"ErrorCode":406,"Message":"inactive: to@x.test, other@x.test"}'
    outcome, _ = ask(transport, "postmark", 422, body)
    assert outcome == Rejected("refused: 422 406 inactive: … …")
