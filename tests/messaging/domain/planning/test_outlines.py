"""A request, held against its organization's policy."""

import pytest

from messaging.domain.channels import Channel
from messaging.domain.planning import RefusalCode, RequestedRecipient, SendRefusal
from messaging.domain.policy import SendingPolicy
from tests.messaging.domain.planning.scene import POLICY, SENDER, outlined, problems_of

WITHOUT_SENDER = SendingPolicy(POLICY.categories, {}, None, POLICY.sending)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"category": "NONE"}, "category"),
        ({"sender_domain": "other.example"}, "from.domain"),
        ({"recipients": [RequestedRecipient("ada", {})] * 2}, "to[1].contactId"),
        ({"channels": [Channel.SMS], "sender_name": "longer than allowed"}, "from.name"),
        ({"channels": [Channel.EMAIL], "policy": WITHOUT_SENDER}, "from.domain"),
    ],
)
def test_request_against_the_policy_is_refused_with_its_field(fields, field):
    refusal = outlined(**fields).refusal
    assert refusal.code is RefusalCode.INVALID_PAYLOAD
    assert [problem.field for problem in refusal.fields] == [field]


def test_category_not_granted_to_the_application_is_forbidden():
    refusal = outlined(may_send=False).refusal
    assert refusal == SendRefusal(RefusalCode.FORBIDDEN, permission="SEND:TRANSACTIONAL")


def test_sender_name_unusable_for_sms_is_a_warning_if_email_is_possible():
    outline = outlined(sender_name="longer than allowed")
    assert (outline.refusal, outline.sms_sender) == (None, "")
    text = "too long. Recipients of the SMS see the account's own sender."
    assert [tuple(warning) for warning in outline.warnings] == [("from.name", text)]


def test_sms_without_email_needs_no_sender_domain():
    outline = outlined(channels=[Channel.SMS], policy=WITHOUT_SENDER, sender_name="Acme")
    assert (outline.refusal, outline.sender, outline.sms_sender) == (None, None, "Acme")


def test_request_without_channels_tries_the_category_s():
    outline = outlined(channels=())
    assert outline.channels == (Channel.PUSH, Channel.EMAIL, Channel.SMS)
    assert outline.sender == SENDER


def test_only_the_first_problem_of_a_request_is_named():
    refusal = outlined(category="NONE", sender_domain="other.example").refusal
    assert problems_of(refusal) == [
        ("category", "no such category: NONE (there are MARKETING, TRANSACTIONAL)")
    ]
