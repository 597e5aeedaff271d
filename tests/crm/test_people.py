"""Finding people: by words of their names, and by parts of their addresses."""

import pytest
from django.db import connection

from rme.core.cache import TtlCache
from rme.crm import people
from rme.crm.models import Contact, Platform
from tests import factories
from tests.plans import explained

pytestmark = pytest.mark.django_db


@pytest.fixture
def org():
    return factories.organization(region="CH")


def add(org, first_name="", last_name="", **fields):
    row = {"email": "", "first_name": first_name, "last_name": last_name, **fields}
    return Contact.objects.create(organization=org, **row)


def names(rows):
    return [row.name for row in rows]


def suggested(org, text, *, by_parts=True):
    return names(people.suggest(org.pk, text, limit=10, by_parts=by_parts))


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        (
            ("José", "Müller"),
            ["jose", "JOSÉ", "mull", "müll", "Müller", "mu", "jo mull", "müller j"],
        ),
        (("Jose", "Muller"), ["josé", "JOSE", "müll", "Jose Muller"]),
        (("Anna Maria", "van der Berg"), ["maria", "berg", "van der", "BERG anna", "der berg"]),
        (("Jean-Luc", "O’Brien"), ["jean-luc", "luc", "brien", "o'brien", "O’Brien", "jean-l"]),
        (("Søren", "Łukasz"), ["soren", "lukasz", "SØREN", "łuk"]),
        (("Gerd", "Groß"), ["gross", "groß", "GROSS", "GROẞ", "gro"]),
        (("Ægir", "Þór"), ["aegir", "ægir", "þor"]),
        (("Юлия", "Ёлкина"), ["юлия", "ЮЛИ", "елк", "ёлкина"]),
        (("Ελένη", "Παππά"), ["ελενη", "ΕΛΈΝΗ", "παππα"]),
        (("太郎", "山田"), ["山田", "山", "太郎 山田"]),
        (("ｊｏｈｎ", "Ǆordan"), ["john", "dzor", "džordan"]),
        (("Nguyễn", "Thị Ánh"), ["nguyen", "anh", "thi anh", "NGUYỄN"]),
    ],
)
def test_person_is_found_by_the_beginning_of_any_word_of_the_name(org, name, texts):
    add(org, *name)
    add(org, "Grace", "Hopper")
    expected = [" ".join(name)]
    limit = {"limit": 10}
    assert {text: names(people.find(org.pk, text, **limit)) for text in texts} == dict.fromkeys(
        texts, expected
    )


@pytest.mark.parametrize(
    "text", ["uller", "ose", "mull x", "@mull", "'", "':*", "\\", "& |", "-", "\0m"]
)
def test_person_is_not_found_by_other_text(org, text):
    add(org, "José", "Müller", mobile="+41793992930")
    assert people.find(org.pk, text, limit=10) == suggested(org, text) == []


def test_whole_words_come_before_beginnings(org):
    for number in range(12):
        add(org, "Annabelle", f"A{number:02}")
    add(org, "Ann", "Zed")
    assert names(people.find(org.pk, "ann", limit=1)) == ["Ann Zed"]
    assert len(people.find(org.pk, "ann", limit=10)) == 10


@pytest.mark.parametrize(
    "text",
    ["0793992930", "079 399 29 30", "+41 79 399 29 30", "0041793992930", "41793992930",
     "0793", "079 399", "+41793", "0041793", "793992", "41793", "2930", "992930", "399 29 30"],
)  # fmt: skip
@pytest.mark.parametrize("column", ["mobile", "phone"])
def test_person_is_found_by_a_phone_number_and_its_parts(org, column, text):
    add(org, "José", "Müller", **{column: "+41793992930"})
    add(org, "Grace", "Hopper", **{column: "+41781112233"})
    assert suggested(org, text) == ["José Müller"]


@pytest.mark.parametrize("text", ["079", "930", "93992", "+49793"])
def test_few_or_other_digits_find_nobody(org, text):
    add(org, "José", "Müller", mobile="+41793992930")
    assert suggested(org, text) == []


@pytest.mark.parametrize(
    "text", ["jose.m", "JOSE.M", "jose", "jose.m@exa", "jose.m@example.co", "jose.m@example.com"]
)
def test_person_is_found_by_the_beginning_of_the_email_address(org, text):
    add(org, "", "Someone", email="Jose.M@example.com")
    add(org, "", "Else", email="ajose.m@example.com")
    assert suggested(org, text) == ["Someone"]


def test_parts_of_addresses_find_nobody_for_those_who_see_masked_ones(org):
    add(org, "José", "Müller", mobile="+41793992930", email="josm@example.com")
    parts = ["josm", "josm@exa", "0793", "2930", "793992"]
    assert [suggested(org, text, by_parts=False) for text in parts] == [[]] * 5
    whole = ["josm@example.com", "0793992930", "mull"]
    assert [suggested(org, text, by_parts=False) for text in whole] == [["José Müller"]] * 3


def test_suggestions_have_nobody_of_another_organization(org):
    other = factories.organization("other", region="CH")
    add(other, "José", "Müller", mobile="+41793992930", email="josm@example.com")
    for text in ("mull", "josm", "josm@example.com", "0793", "2930"):
        assert suggested(org, text) == []
        assert suggested(other, text) == ["José Müller"]


def test_contact_with_the_longest_names_is_stored_and_found(org):
    add(org, "ﷺ" * 255, "㌖" * 255, phone="+41446681800")
    add(org, "𝕄" * 255, "x" * 255)
    assert len(people.find(org.pk, "m" * 90, limit=10)) == 1
    assert suggested(org, "1800") == [" ".join(["ﷺ" * 255, "㌖" * 255])]


def test_suggestions_ask_no_remote_platform(org):
    Platform.objects.create(organization=org, kind="odoo", credentials="{}")
    TtlCache.clear_all()
    assert suggested(org, "josm@example.com") == []


@pytest.mark.parametrize(
    ("text", "count"),
    [("mull", 2), ("jo mull", 2), ("josm@exa", 1), ("josm@example.com", 2), ("0793", 2),
     ("0793992930", 2), ("nobody", 2), ("12", 1), ("@", 1)],
)  # fmt: skip
def test_suggestion_takes_the_same_statements_for_any_number_of_people(
    org, text, count, django_assert_num_queries
):
    suggested(org, text)  # settings are cached from here on
    for number in (1, 5):
        for row in range(number):
            add(org, "José", f"Müller{row}", mobile=f"+417939929{number}{row}")
        with django_assert_num_queries(count):
            suggested(org, text)


@pytest.mark.parametrize(
    ("text", "indexes"),
    [("last99", {"contact_by_words"}), ("p99", {"contact_by_words", "contact_by_email_start"}),
     ("+1212555", {"contact_by_mobile", "contact_by_phone", "contact_by_words"})],
)  # fmt: skip
def test_people_are_found_by_indexes(org, text, indexes):
    rows = (
        Contact(
            organization=org, first_name=f"First{number}", last_name=f"Last{number}",
            email=f"p{number}@x.example", mobile=f"+4179{number:07}",
        )
        for number in range(3000)
    )  # fmt: skip
    Contact.objects.bulk_create(rows)
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {Contact._meta.db_table}")  # plans depend on no other test's rows
    suggested(org, "x")  # settings are cached from here on
    with explained() as plans:
        people.suggest(org.pk, text, limit=10, by_parts=True)
    assert {name for name in indexes if any(f" {name} " in line for line in plans)} == indexes
    assert [line for line in plans if "Seq Scan" in line] == []
