"""Ids: their order, their times, and reading them strictly."""

import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest

from rme.core import ids


@pytest.mark.promise("calls-5")
def test_ids_sort_by_time_and_contain_it():
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    made = [ids.new_id() for _ in range(1000)]
    assert made == sorted(made)
    assert before <= ids.moment(made[0]) <= datetime.now(UTC)
    assert {(i.version, i.variant) for i in made} == {(7, "specified in RFC 4122")}


def test_at_least_is_the_lowest_id_of_a_time():
    now = datetime.now(UTC)
    new = ids.new_id()
    assert ids.at_least(now - timedelta(seconds=1)) < new
    assert ids.at_least(datetime.now(UTC) + timedelta(seconds=1)) > new
    assert ids.at_least(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))).int >> 80 == 0


@pytest.mark.promise("calls-5")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "01a1fb37a4a474709fc26927566e64b5",
        "\0" * 36,
    ],
)
def test_only_the_canonical_form_is_an_id(text):
    assert ids.parse(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "01a1fb37-a4a4-7470-9fc2-6927566e64b5",
        "01a1fb37a4a474709fc26927566e64b5",
        " {01A1fb37-a4a4-7470-9fc2-6927566e64b5}\n",
    ],
)
def test_reported_id_is_read_in_any_spelling(text):
    assert str(ids.parse_reported(text)) == "01a1fb37-a4a4-7470-9fc2-6927566e64b5"


@pytest.mark.parametrize("text", ["", "x", "\0" * 36, "1a1fb37-a4a4-7470-9fc2-6927566e64b5"])
def test_malformed_id_is_not_parsed(text):
    assert ids.parse_reported(text) is None


def test_an_id_is_read_back():
    made = ids.new_id()
    assert ids.parse(str(made)) == made


def test_ids_of_moments_within_a_millisecond_keep_their_order():
    moments = [1_700_000_000_000_000_000 + step * 250 for step in range(4000)]
    made = [ids.text_id_of(moment) for moment in moments]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {uuid.UUID(each).version for each in made} == {7}
    assert ids.moment(uuid.UUID(made[-1])).timestamp() == 1_700_000_000
