"""Records built from a platform's rows."""

import pytest

from rme.crm import mapping
from rme.crm.connectors import rows
from rme.crm.connectors.values import Values

CONTACT = mapping.parse(
    {
        "Account": {"object": "Account", "fields": {"name": ["Name"]}},
        "Contact": {
            "object": "Contact",
            "fields": {"email": ["Email"], "mobile": ["Mobile", "Other"], "phone": ["Phone"]},
        },
    }
)["Contact"]


@pytest.mark.parametrize(
    ("region", "typed", "mobile"),
    [
        ("US", "(479) 312-3456", "+14793123456"),
        ("US", "4793123456", "+14793123456"),  # also Norway's 47 93 12 34 56; no trunk prefix
        ("CA", "4793123456", "+14793123456"),
        ("US", "+47 93 12 34 56", "+4793123456"),
        ("US", "0033612345679", "+33612345679"),
        ("DE", "0033 6 12 34 56 79", "+33612345679"),
        ("DE", "33612345679", ""),  # a German landline or a French mobile: nobody knows
        ("DE", "0151 23456789", "+4915123456789"),
        ("MX", "+52 1 55 6200 0000", "+525562000000"),
        ("MX", "55 6200 0000", "+525562000000"),
        ("US", "call reception", ""),
        ("US", "", ""),
    ],
)
def test_mobile_of_a_platform_is_one_number_or_none(region: str, typed: str, mobile: str) -> None:
    contact = rows.contact(Values(CONTACT, {"Mobile": typed}), region)
    assert (contact.mobile, contact.phones) == (mobile, (typed,) if typed else ())


def test_ambiguous_mobile_leaves_the_next_field() -> None:
    row = {"Mobile": "33612345679", "Other": "0151 23456789", "Phone": "33612345679"}
    contact = rows.contact(Values(CONTACT, row), "DE")
    assert (contact.mobile, contact.phone) == ("+4915123456789", "33612345679")
    assert contact.phones == ("33612345679", "0151 23456789")
