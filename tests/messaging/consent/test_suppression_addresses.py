"""Addresses on the suppression list: never another one than was meant."""

import csv
from datetime import timedelta
from importlib import import_module
from uuid import uuid4

import phonenumbers
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection

from messaging.consent import suppressions
from messaging.models import AddressOptOut, Suppression
from rme.core import addresses
from rme.core.addresses import Digits
from rme.core.cache import TtlCache
from rme.core.db import clock
from tests import factories
from tests.rest import error, message

pytestmark = pytest.mark.django_db
NORMALIZE = import_module("messaging.migrations.0055_normal_addresses").normalize
REGIONS = sorted(phonenumbers.SUPPORTED_REGIONS)


def examples():
    """Return the example number of each region, mobile and fixed, as E.164."""
    kinds = (phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.FIXED_LINE)
    found = (phonenumbers.example_number_for_type(each, kind) for each in REGIONS for kind in kinds)
    texts = {phonenumbers.format_number(each, 0) for each in found if each}
    return sorted(texts)


def test_digits_of_another_country_are_never_misread_in_any_region():
    numbers, wrong = examples(), []
    for place, region in enumerate(REGIONS):
        for number in numbers[place % 40 :: 40]:  # all of them for all regions take a minute
            read = addresses.phone(number[1:], region)
            if read not in (None, *addresses.phone_spellings(number)):
                wrong.append((region, number, read))
            if addresses.phone(number[1:], region, Digits.INTERNATIONAL) != number:
                wrong.append((region, number, "INTERNATIONAL"))
            if addresses.phone(number, region) != number:
                wrong.append((region, number, "+"))
    assert wrong == []
    assert len(numbers) > 400


def test_numbers_in_national_notation_are_read_in_their_region():
    wrong = []
    for region in REGIONS:
        number = phonenumbers.example_number_for_type(region, phonenumbers.PhoneNumberType.MOBILE)
        if number is None:
            continue
        written = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
        wanted = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
        readings = addresses.phone_readings(written, region)
        if wanted not in readings or addresses.phone(written, region, Digits.NATIONAL) != wanted:
            wrong.append((region, written, readings))
    assert wrong == []


def test_an_ambiguous_number_is_refused_with_both_readings(org, api):
    type(org).objects.filter(pk=org.pk).update(region="DE")
    TtlCache.clear_all()
    body = {"channel": "SMS", "address": "33612345678"}
    answer = api.call("POST", "/suppressions", body)
    why = (
        "may be +4933612345678 or +33612345678: write it with + and the country code, like "
        "+33612345678"
    )
    assert answer.status_code == 400
    assert answer.json() == error("INVALID_PAYLOAD", f"address: {why}", ("address", why))
    assert list(Suppression.objects.all()) == []


@pytest.mark.parametrize(
    ("digits", "address"),
    [("international", "+33612345678"), ("national", "+4933612345678"), ("unsaid", None)],
)
def test_import_reads_digits_by_its_option(org, api, tmp_path, digits, address):
    type(org).objects.filter(pk=org.pk).update(region="DE")
    TtlCache.clear_all()
    file, report = tmp_path / "list.csv", tmp_path / "bad.csv"
    file.write_text("channel,address,reason\nSMS,33612345678,STOP\n")
    call_command("import_suppressions", file, "--org", org.pk, digits=digits, report=report)
    assert list(Suppression.objects.values_list("address", flat=True)) == [address] * bool(address)
    bad = list(csv.reader(report.open()))[1:]
    assert [field for _, field, _ in bad] == [] if address else ["address"]
    person = factories.contact(org, mobile="+33612345678")
    answer = api.send(message(person, channel="SMS"))
    assert (answer.status_code == 403) == (digits == "international")


@pytest.mark.parametrize(
    ("listed", "email"),
    [
        ("zw1@sink.test\u200b", "zw1@sink.test"),
        ("zw1@sink.test", "zw1@si\u00adnk.test\u00a0"),
        ("ADA@BÜCHER.example", "ada@xn--bcher-kva.example"),
        ("a..b@docomo.ne.jp", "A..B@docomo.ne.jp"),
        ("ada@docomo.ne.jp", '"ada"@docomo.ne.jp'),
    ],
)
def test_an_entry_holds_for_each_spelling_of_an_email(org, api, listed, email):
    assert api.call("POST", "/suppressions", {"channel": "EMAIL", "address": listed}).json()["id"]
    answer = api.send(message(factories.contact(org, email=email)))
    assert answer.json()["error"]["code"] == "SUPPRESSED"


def entry(org, channel, address, **fields):
    """List an address as it is, as earlier releases stored it."""
    return Suppression.objects.create(organization=org, channel=channel, address=address, **fields)


PHONES = [  # one phone each
    ("+5511981234567", "+551181234567"),  # Brazil's ninth digit
    ("+5521961234567", "+552161234567"),
    ("+5215562000000", "+525562000000"),
    ("+5491123456789", "+541123456789"),
]


@pytest.mark.parametrize("channel", ["SMS", "ALL"])
@pytest.mark.parametrize(("listed", "mobile"), [*PHONES, *(pair[::-1] for pair in PHONES)])
def test_an_entry_holds_for_each_spelling_of_a_phone(org, api, channel, listed, mobile):
    entry(org, channel, listed, reason="MANUAL")
    answer = api.send(message(factories.contact(org, mobile=mobile), channel="SMS"))
    assert answer.json()["error"]["code"] == "SUPPRESSED"
    found = api.call("GET", f"/suppressions?channel={channel}&address={mobile}").json()
    assert [each["address"] for each in found["suppressions"]] == [listed]


@pytest.mark.parametrize(
    ("listed", "mobile"),
    [
        ("+551141234567", "+5511941234567"),  # a landline, and a mobile that never had eight digits
        ("+551121234567", "+5511921234567"),
        ("+551181234567", "+5521981234567"),  # another area
    ],
)
def test_other_brazilian_phones_are_not_merged(org, api, listed, mobile):
    entry(org, "SMS", listed, reason="MANUAL")
    answer = api.send(message(factories.contact(org, mobile=mobile), channel="SMS"))
    assert answer.status_code == 202


OLD_FORMS = [
    '"john"@sink.test',
    "jo\u200bhn@sink.test",
    "john@sink.test.",
    "john@si\u00adnk.test",
]


@pytest.mark.parametrize("old", OLD_FORMS)
def test_entries_of_earlier_releases_are_found_by_the_normal_form(org, api, old):
    person, twin = (factories.contact(org, email="john@sink.test") for _ in range(2))
    row = entry(org, "EMAIL", old, reason="STOP", note="by phone")
    ledger_entry = uuid4()
    AddressOptOut.objects.create(
        organization=org,
        address=old,
        channel="EMAIL",
        category="TRANSACTIONAL",
        occurred_at=clock.now(),
        entry=ledger_entry,
    )
    for _ in range(2):
        NORMALIZE(apps, connection.schema_editor())
    moved = Suppression.objects.get()
    assert (moved.pk, moved.address, moved.note) == (row.pk, "john@sink.test", "by phone")
    objection = AddressOptOut.objects.get()
    assert (objection.address, objection.entry) == ("john@sink.test", ledger_entry)
    assert api.send(message(person)).json()["error"]["code"] == "SUPPRESSED"
    moved.delete()
    assert api.send(message(twin)).json()["error"]["code"] == "NO_CONSENT"


def test_entries_of_one_mailbox_are_merged(org):
    later = clock.now() + timedelta(days=9)
    rows = [
        ("john@sink.test", "MANUAL", "", later),
        ('"john"@sink.test', "STOP", "by phone", None),
        ("john@sink.test.", "HARD_BOUNCE", "", later),
        ('"john doe"@sink.test', "MANUAL", "", None),  # needs its quotes
        ("\u017fam@sink.test", "MANUAL", "", None),  # no mailbox that a message is sent to
        ("o'neil+news@sink.test", "MANUAL", "", None),
    ]
    for address, reason, note, expires_at in rows:
        entry(org, "EMAIL", address, reason=reason, note=note, expires_at=expires_at)
    NORMALIZE(apps, connection.schema_editor())
    fields = ("address", "reason", "note", "expires_at")
    assert sorted(Suppression.objects.values_list(*fields)) == sorted(
        [("john@sink.test", "STOP", "by phone", None), *rows[3:]]
    )


def test_latest_opt_out_of_a_mailbox_is_kept(org):
    now = clock.now()
    earlier, later = now - timedelta(days=2), now - timedelta(days=1)
    for address, occurred_at in (("a@b.test", earlier), ('"a"@b.test', later), ("a@b.test.", now)):
        AddressOptOut.objects.create(
            organization=org,
            address=address,
            channel="EMAIL",
            category="ALL",
            occurred_at=occurred_at,
            entry=uuid4(),
        )
    NORMALIZE(apps, connection.schema_editor())
    assert list(AddressOptOut.objects.values_list("address", "occurred_at")) == [("a@b.test", now)]


@pytest.mark.parametrize("text", ["\u212aelvin7@sink.test", "\u017fam@sink.test", "ı@sink.test"])
def test_address_folding_to_another_mailbox_is_rejected(org, api, text):
    answer = api.call("POST", "/suppressions", {"channel": "EMAIL", "address": text})
    assert answer.status_code == 400
    person = factories.contact(org, email=text)
    assert api.send(message(person)).json()["error"]["code"] == "UNREACHABLE"
    assert suppressions.normalize_address("EMAIL", text, "US") is None
