"""Verdicts of the gates, on values alone."""

import pytest

from messaging.domain.gates import (
    OPTED_IN,
    OPTED_OUT,
    ActiveSuppressions,
    AddressLevel,
    ConsentPermission,
    ConsentState,
    CurrentConsent,
    GateRefusal,
    GateVerdict,
    Level,
    Pauses,
    PauseScope,
    decide,
)

IN, OUT = OPTED_IN, OPTED_OUT
PHONE, OLD_PHONE = "+5511987654321", "+551187654321"


def spell(address: str) -> tuple[str, ...]:
    return (PHONE, OLD_PHONE) if address == PHONE else (address,)


# --- consent --------------------------------------------------------------------------------------


def consent(*entries, objections=()) -> CurrentConsent:
    states = {
        Level("ada", channel, category): ConsentState(status, at, f"{status} {channel} {category}")
        for channel, category, status, at in entries
    }
    return CurrentConsent(
        states,
        {
            AddressLevel(address, "SMS", category): ConsentState(OUT, at, "objection")
            for address, category, at in objections
        },
        spell,
    )


@pytest.mark.parametrize(
    ("entries", "opt_in", "permission"),
    [
        ([], True, (False, None)),
        ([], False, (True, None)),
        ([("EMAIL", "NEWS", IN, 1)], True, (True, "OPTED_IN EMAIL NEWS")),
        ([("EMAIL", "NEWS", OUT, 1)], False, (False, "OPTED_OUT EMAIL NEWS")),
        ([("ALL", "ALL", IN, 1)], True, (True, "OPTED_IN ALL ALL")),
        ([("ALL", "NEWS", IN, 1)], True, (True, "OPTED_IN ALL NEWS")),
        ([("EMAIL", "ALL", OUT, 1)], False, (False, "OPTED_OUT EMAIL ALL")),
        # the most specific level decides
        (
            [("ALL", "ALL", OUT, 1), ("EMAIL", "NEWS", IN, 2)],
            True,
            (True, "OPTED_IN EMAIL NEWS"),
        ),
        # a newer objection blocks on any level
        (
            [("EMAIL", "NEWS", IN, 1), ("ALL", "ALL", OUT, 2)],
            True,
            (False, "OPTED_OUT ALL ALL"),
        ),
        (
            [("EMAIL", "NEWS", IN, 1), ("EMAIL", "ALL", OUT, 2)],
            True,
            (False, "OPTED_OUT EMAIL ALL"),
        ),
        # a tie between two levels of one rank goes against sending
        (
            [("ALL", "NEWS", IN, 1), ("EMAIL", "ALL", OUT, 1)],
            True,
            (False, "OPTED_OUT EMAIL ALL"),
        ),
        ([("SMS", "NEWS", OUT, 1)], False, (True, None)),
        ([("EMAIL", "OTHER", OUT, 1)], False, (True, None)),
    ],
)
def test_consent_entry_decides_the_permission(entries, opt_in, permission):
    assert consent(*entries).permission("ada", "EMAIL", "NEWS", opt_in=opt_in) == permission


@pytest.mark.parametrize("address", [PHONE, OLD_PHONE])
def test_objection_of_an_address_holds_in_all_its_spellings(address):
    current = consent(("SMS", "NEWS", IN, 1), objections=[(address, "NEWS", 2)])
    permission = current.permission("ada", "SMS", "NEWS", opt_in=True, address=PHONE)
    assert permission == (False, "objection")


def test_objection_of_another_address_does_not_count():
    current = consent(("SMS", "NEWS", IN, 1), objections=[("+12125550100", "NEWS", 2)])
    assert current.allows("ada", "SMS", "NEWS", opt_in=True, address=PHONE)


@pytest.mark.parametrize(
    ("live", "test", "allowed"),
    [
        ((IN, 1), (OUT, 2), False),
        ((IN, 2), (OUT, 1), True),
        ((OUT, 1), (IN, 1), False),
        ((IN, 1), (OUT, 1), False),
    ],
)
def test_newest_decision_of_both_layers_counts(live, test, allowed):
    layers = [consent(("EMAIL", "NEWS", *entry)) for entry in (test, live)]
    merged = layers[0].above(layers[1])
    assert merged.allows("ada", "EMAIL", "NEWS", opt_in=True) is allowed


# --- suppressions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("addresses", "contacts", "entry"),
    [
        ({}, {}, None),
        ({("SMS", PHONE): "1"}, {}, "1"),
        ({("ALL", OLD_PHONE): "2"}, {}, "2"),
        ({("EMAIL", PHONE): "3"}, {}, None),
        ({}, {("SMS", "ada"): "4"}, "4"),
        ({("SMS", PHONE): "1"}, {("ALL", "ada"): "5"}, "5"),
        ({}, {("ALL", "ben"): "6"}, None),
    ],
)
def test_suppression_entry_is_found(addresses, contacts, entry):
    assert ActiveSuppressions(addresses, contacts, spell).entry("SMS", PHONE, "ada") == entry


def test_address_is_not_needed_for_a_suppressed_contact():
    suppressions = ActiveSuppressions({("PUSH", ""): "1"}, {("PUSH", "ada"): "2"})
    assert suppressions.entry("PUSH", None, "ada") == "2"
    assert suppressions.entry("PUSH", None, "ben") is None


# --- pauses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scope", "covers"),
    [
        (("", "", ""), True),
        (("EMAIL", "", ""), True),
        (("SMS", "", ""), False),
        (("EMAIL", "NEWS", ""), True),
        (("EMAIL", "OTHER", ""), False),
        (("", "", "welcome"), True),
        (("", "", "bye"), False),
    ],
)
def test_pause_covers_messages_matching_all_its_parts(scope, covers):
    assert Pauses([PauseScope(*scope)]).cover("EMAIL", "NEWS", "welcome") is covers


# --- the verdict ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suppression", "allowed", "is_capped", "verdict"),
    [
        (None, True, False, GateVerdict(None, "7")),
        ("1", False, True, GateVerdict(GateRefusal.SUPPRESSED, "1")),
        (None, False, True, GateVerdict(GateRefusal.NO_CONSENT, "7")),
        (None, True, True, GateVerdict(GateRefusal.FREQUENCY_CAPPED)),
    ],
)
def test_first_refusing_gate_decides(suppression, allowed, is_capped, verdict):
    counted = []

    def count() -> bool:
        counted.append(1)
        return is_capped

    assert decide(suppression, ConsentPermission(allowed, "7"), count) == verdict
    assert len(counted) == (suppression is None and allowed)
