"""The channels, the texts and the time of each recipient."""

import datetime as dt

import pytest

from messaging.domain.channels import Channel
from messaging.domain.planning import (
    Option,
    RefusalCode,
    RequestedTemplate,
    languages,
)
from messaging.domain.statuses import Status
from messaging.domain.timing import FixedTime, LocalTime
from tests.messaging.domain.planning.scene import ADA, Version, drafted, problems_of

NOTE = RequestedTemplate("note", None)
ENGLISH, SWISS = Version(1), Version(2)
VERSIONS = {("note", "en", "EMAIL"): ENGLISH, ("note", "de_CH", "EMAIL"): SWISS}


def test_draft_has_the_channels_with_an_address():
    (recipient,) = drafted(contacts=[ADA._replace(phone=None)]).recipients
    assert recipient.options == [Option(Channel.EMAIL, "ada@example.com")]
    assert [tuple(decision) for decision in recipient.decisions] == [("SMS", "UNREACHABLE", None)]


def test_push_goes_to_the_devices():
    devices = frozenset({("IOS", "app")})
    draft = drafted(
        contacts=[ADA._replace(devices=devices)],
        channels=[Channel.PUSH],
        literal_channels=[Channel.PUSH],
    )
    assert draft.recipients[0].options == [Option(Channel.PUSH, None, devices)]


def test_unknown_contact_is_rejected_alone():
    draft = drafted("ada", "bob")
    first, second = draft.recipients
    assert (first.refusal, draft.refusal) == (None, None)
    assert second.refusal.code is RefusalCode.NOT_FOUND
    assert problems_of(second.refusal) == [("to[1].contactId", "no such contact")]
    assert second.status is Status.BLOCKED


def test_unknown_record_refuses_the_request():
    refusal = drafted(record_id="none").refusal
    assert refusal.text == "context.recordId: no such record"
    assert drafted(record_id="order", record={"id": "order"}).refusal is None


def test_content_unsuitable_for_every_channel_is_rejected():
    refusal = drafted("unknown", channels=[Channel.EMAIL], literal_channels=()).refusal
    assert problems_of(refusal) == [("content.subject", "is required for email")]


def test_channel_without_a_text_is_left_out():
    (recipient,) = drafted(literal_channels=[Channel.SMS]).recipients
    assert [option.channel for option in recipient.options] == [Channel.SMS]
    assert [tuple(each) for each in recipient.decisions] == [("EMAIL", "INVALID_PAYLOAD", None)]


def test_template_is_in_the_language_of_each_recipient():
    bob = ADA._replace(id="bob", language="de_CH")
    draft = drafted("ada", "bob", contacts=[ADA, bob], template=NOTE, versions=VERSIONS)
    first, second = draft.recipients
    assert [option.version for option in first.options] == [ENGLISH]
    assert [option.version for option in second.options] == [SWISS]
    assert [tuple(each) for each in second.decisions] == [("SMS", "TEMPLATE_NOT_FOUND", None)]
    assert (first.templates, second.templates) == ((ENGLISH,), (SWISS,))


def test_template_without_any_version_refuses_the_request():
    draft = drafted(template=NOTE._replace(language="fr"), versions={})
    assert draft.refusal.code is RefusalCode.TEMPLATE_NOT_FOUND
    assert draft.refusal.text == "There is no active template note in fr for email, SMS."
    assert draft.recipients[0].decisions == []


def test_template_of_another_category_refuses_the_request():
    versions = {("note", "en", "EMAIL"): Version(3, category="MARKETING")}
    refusal = drafted(template=NOTE, versions=versions).refusal
    assert problems_of(refusal) == [("category", "the template's category is MARKETING")]


@pytest.mark.parametrize(("chain", "tried"), [(True, ["de_CH", "de", "en"]), (False, ["de_CH"])])
def test_languages_fall_back_if_the_organization_allows_it(chain, tried):
    assert languages("de_CH", "en", chain=chain) == tried


@pytest.mark.promise("schedule-8")
def test_local_time_already_passed_expires_the_recipient():
    schedule = LocalTime(dt.time(9), dt.date(2026, 11, 23))
    draft = drafted("ada", "bob", contacts=[ADA, ADA._replace(id="bob", zone="Pacific/Honolulu")],
                    schedule=schedule)  # fmt: skip
    ada, bob = draft.recipients
    assert draft.refusal is None
    assert (ada.status, ada.refusal.text) == (
        Status.EXPIRED,
        "schedule.time: this time has passed there",
    )
    assert bob.refusal.code is RefusalCode.INVALID_PAYLOAD


def test_time_that_is_wrong_for_all_refuses_the_request():
    schedule = FixedTime(dt.datetime(2028, 1, 1, tzinfo=dt.UTC))
    draft = drafted(schedule=schedule)
    assert problems_of(draft.refusal) == [("schedule.at", "more than a year ahead")]
    assert draft.recipients[0].refusal is None
