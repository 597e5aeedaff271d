"""What a mapping may say, what it says, and how people type it."""

from datetime import UTC, datetime

import pytest

from rme.crm import mapping, mapping_text
from rme.crm.connectors.values import Values
from rme.crm.mapping import Condition, MappingInvalid, ObjectMapping, Problem, problems_with
from rme.crm.presets import PRESETS
from tests.crm.conformance import INJECTIONS

GOOD = {
    "Account": {"object": "Account", "fields": {"name": ["Name"]}},
    "Contact": {"object": "Contact", "fields": {"email": ["Email"]}},
}


def problems(**parts):
    with pytest.raises(MappingInvalid) as raised:
        mapping.parse({**GOOD, "Contact": {**GOOD["Contact"], **parts}})
    return [(each.kind, each.place) for each in raised.value.problems]


@pytest.mark.promise("mapping-5")
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_a_mapping(name):
    raw = PRESETS[name].mapping
    read = mapping.parse(raw)
    assert set(read) == set(raw) and set(read) <= set(mapping.KINDS)
    assert all(isinstance(each, ObjectMapping) for each in read.values())


@pytest.mark.promise("mapping-5")
@pytest.mark.parametrize("name", PRESETS)
def test_preset_shown_as_text_can_be_typed_back(name):
    raw = PRESETS[name].mapping
    typed = {kind: mapping_text.read(kind, mapping_text.as_text(raw[kind])) for kind in raw}
    assert mapping.parse(typed) == mapping.parse(raw)


@pytest.mark.promise("mapping-2")
@pytest.mark.parametrize("text", [*INJECTIONS, "", "a b", "1a", "a..b", "a.", ".a", "a" * 81, 7])
def test_only_names_may_stand_for_fields_and_objects(text):
    assert problems(fields={"email": [text]}) == [("Contact", "email")]
    if text:
        assert ("Contact", "object") in problems(object=text)


@pytest.mark.parametrize(
    ("parts", "where"),
    [
        ({"filter": [["IsActive", "OR", True]]}, "filter"),
        ({"filter": [["IsActive", "=", None]]}, "filter"),
        ({"filter": [["Is Active", "=", 1]]}, "filter"),
        ({"filter": [["IsActive", "=", "a\0b"]]}, "filter"),
        ({"filter": "x"}, "filter"),
        ({"defaults": {"a.b": "x"}}, "defaults"),
        ({"defaults": {"a": ["x"]}}, "defaults"),
        ({"defaults": {"a": 10**400}}, "defaults"),
        ({"values": {"status": {"a": []}}}, "status"),
        ({"values": {"nothing": {"a": "b"}}}, "nothing"),
        ({"values": []}, "values"),
        ({"fields": {"shoe_size": ["Size"], "email": ["E"]}}, "shoe_size"),
        ({"fields": {"email": ["E"] * 9}}, "email"),
        ({"fields": {}}, "email"),
        ({"more": 1}, "more"),
    ],
)
def test_forbidden_content_of_a_mapping_is_reported(parts, where):
    assert problems(**parts) == [("Contact", where)]


@pytest.mark.parametrize("raw", [None, [], {}, {"Contact": 7}, {**GOOD, "Lead": {}}])
def test_malformed_mapping_is_rejected(raw):
    with pytest.raises(MappingInvalid):
        mapping.parse(raw)


MAPPED = ObjectMapping(
    object="X",
    fields={
        "email": ("Email", "Other.Email"),
        "phones": ("Phone", "Mobile", "Home"),
        "account_id": ("Account",),
        "account_name": ("Account",),
        "status": ("Status",),
        "is_registered": ("Status",),
        "attended": ("Came",),
        "event_start": ("Start",),
        "subject": ("Subject",),
        "contact_id": ("Partner",),
        "contact_email": ("Partner.Email",),
    },
    values={"status": {"open": "Registered"}, "is_registered": {"open": True, "*": False}},
    filter=(Condition("Kind", "=", "person"), Condition("Old", "!=", True)),
    defaults={"Source": "Bot", "Kind": "other"},
)


@pytest.mark.promise("odoo-3", "mapping-1")
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"Email": "a@b", "Other": {"Email": "c@d"}}, "a@b"),
        ({"Email": None, "Other": {"Email": "c@d"}}, "c@d"),
        ({"Email": False, "Other": {"Email": " c@d\0 "}}, "c@d"),
        ({"Email": "", "Other": None}, ""),
        ({"Email": "", "Other": False}, ""),
        ({"Other": 7}, ""),
        ({"Email": [7, "seven"]}, "seven"),
        ({"Email": 7.0}, "7"),
        ({"Email": {"id": 7, "display_name": "seven"}}, "seven"),
        ({"Email": ["odd"]}, ""),
    ],
)
def test_first_non_empty_field_is_used(row, expected):
    assert Values(MAPPED, row).text("email") == expected


@pytest.mark.promise("odoo-3", "mapping-1")
def test_values_are_converted_to_our_types():
    row = {
        "Phone": "1",
        "Mobile": None,
        "Home": "1",
        "Account": [7, "Acme"],
        "Status": "open",
        "Came": False,
        "Start": "2026-03-04 09:30:00",
    }
    found = Values(MAPPED, row)
    assert found.all("phones") == ("1",)
    assert (found.key("account_id"), found.text("account_name")) == ("7", "Acme")
    assert (found.text("status"), found.flag("is_registered")) == ("Registered", True)
    assert not found.flag("attended")
    assert found.time("event_start") == datetime(2026, 3, 4, 9, 30, tzinfo=UTC)
    assert Values(MAPPED, {"Status": "gone"}).text("status") == "gone"
    assert not Values(MAPPED, {"Status": "gone"}).flag("is_registered")
    assert not Values(MAPPED, {}).flag("is_registered")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-04T09:30:00.000+0000", datetime(2026, 3, 4, 9, 30, tzinfo=UTC)),
        ("2026-03-04T09:30:00Z", datetime(2026, 3, 4, 9, 30, tzinfo=UTC)),
        ("2026-03-04", datetime(2026, 3, 4, tzinfo=UTC)),
        ("soon", None),
        ("", None),
        (False, None),
    ],
)
def test_times_of_all_platforms_are_read(text, expected):
    assert Values(MAPPED, {"Start": text}).time("event_start") == expected


@pytest.mark.promise("mapping-1")
def test_a_new_record_has_defaults_the_filter_and_its_values():
    given = {"subject": "S", "email": "", "contact_id": "7", "contact_email": "x", "account_id": ""}
    assert mapping.platform_row(MAPPED, given) == {
        "Source": "Bot",
        "Kind": "person",
        "Subject": "S",
        "Partner": "7",
    }


def test_names_are_searched_for_as_far_as_they_are_known():
    mapped = {
        "Contact": ObjectMapping("Contact", {"email": ("Email", "Account.Nmae", "Owner.Any")}),
        "Account": ObjectMapping("Acount", {"name": ("Name",)}),
    }
    described = {
        "Contact": {"Email": "", "Account": "Account", "Owner": "User"},
        "Account": {"Name": ""},
        "Acount": None,
    }
    assert problems_with(mapped, described) == [
        Problem("Contact", "email", "Account has no Nmae"),
        Problem("Account", "object", "the platform has no Acount"),
    ]


@pytest.mark.parametrize("value", ["a", "true", "7", '"x"', "null", "a = b", True, 7, 1.5, " x "])
def test_default_shown_as_text_is_read_back(value):
    raw = {"object": "X", "defaults": {"A": value}}
    assert mapping_text.read("Case", mapping_text.as_text(raw))["defaults"] == {"A": value}
