"""Names and addresses as look-ups compare them."""

from importlib import import_module

import pytest
from django.apps import apps
from hypothesis import example, given
from hypothesis import strategies as st

from rme.crm import folding
from rme.crm.models import Account


@pytest.mark.promise("look-ups-7")
@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("Acme", "acme"),
        ("ACME, Inc.", "acme"),
        ("Acme Co., Ltd.", "acme"),
        ("Café Müller GmbH", "cafemuller"),
        ("Müller GmbH & Co. KG", "muller"),
        ("Straße 7 AG", "strasse7"),
        ("Rossi S.p.A.", "rossi"),
        ("Kowalski Sp. z o.o.", "kowalski"),
        ("Van der Berg B.V.", "vanderberg"),
        ("O'Reilly Media", "oreillymedia"),
        ("O’Reilly-Media", "oreillymedia"),
        ("  Northwind \t Observatory ", "northwindobservatory"),
        ("Ｆｕｌｌ Ｗｉｄｔｈ", "fullwidth"),
        ("Limited", "limited"),
        ("SA", "sa"),
        ("Co Op", "coop"),
        ("日本電気", "日本電気"),
        ("3M", "3m"),
        ("IŞIK A.Ş.", "isik"),
        ("Işık A.Ş.", "isik"),
        ("İstanbul", "istanbul"),
        ("!!!", "!!!"),
    ],
)
def test_a_name_is_folded(name, folded):
    assert folding.account_name(name) == folded


@given(st.text(min_size=1, max_size=255))
@example("ı")
def test_a_folded_name_is_short_and_has_no_case(name):
    folded = folding.account_name(name)
    assert len(folded) <= 255
    assert folding.account_name(name.upper().lower()) == folding.account_name(name.lower())


@pytest.mark.django_db
def test_names_folded_by_older_rules_are_folded_again(org):
    rows = [Account(organization=org, name=name) for name in ("Işık", "Acme ı", "Northwind")]
    Account.objects.bulk_create(rows)
    Account.objects.update(name_folded="old")
    import_module("rme.crm.migrations.0005_fold_dotless_i").fold_again(apps, None)
    found = Account.objects.values_list("name_folded", flat=True)
    assert sorted(found) == ["acmei", "isik", "old"]
