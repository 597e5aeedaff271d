"""The words of contacts, by which people find them: of their names, and their numbers from the end.

One index has them all, as the entries of a text search document. Each begins with the id of the
organization, so that a look-up reads nothing of others. PostgreSQL folds what is stored and what is
typed by the same expression, so no column has to be kept up to date. Another expression would need
another index, by a migration.
"""

from django.contrib.postgres.search import SearchVectorField
from django.db.models import Func

# Letters lose case and accents, and punctuation separates words. There are no classes of characters
# and there is no case beyond ASCII here, since they depend on the database's locale.
_FOLDED = r"""btrim(regexp_replace(translate(replace(replace(replace(
lower(regexp_replace(normalize(lower({}), NFKD), '[\u0300-\u036f]', '', 'g')),
'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'øłđðıþ', 'olddit'),
'[\u0001-/:-@\[-`{{-\u00bf\u2010-\u206f\u30fb]+', ' ', 'g'))"""
_NAME = _FOLDED.format("first_name || ' ' || last_name")
_END = "coalesce(' -' || reverse(nullif(substr({}, 2), '')), '')"
# An entry may be 2,046 bytes long, which 400 characters and an id never are.
WORDS = f"""array_to_tsvector(string_to_array(organization_id || '/' || replace(
left({_NAME}, 400) || {_END.format("phone")} || {_END.format("mobile")},
' ', ' ' || organization_id || '/'), ' '))"""
"""The words of a row of contacts, like `acme/ada acme/lovelace acme/-0010555212`."""

_TYPED = _FOLDED.format("%(text)s")
WHOLE = "''''"
BEGINNING = "''':*'"
ENDING = f"{WORDS} @@ ('''' || %(organization)s || '/-' || %(ending)s || {BEGINNING})::tsquery"
"""The condition that a number ends with digits, which are in reverse."""


def named(mark: str) -> str:
    """Return the condition that a name has each of the typed words, or words with its BEGINNING."""
    typed_words = f"replace({_TYPED}, ' ', {mark} || ' & ''' || %(organization)s || '/')"
    return f"{WORDS} @@ ('''' || %(organization)s || '/' || {typed_words} || {mark})::tsquery"


class ContactWords(Func):
    """`WORDS` for the index."""

    template = WORDS
    output_field = SearchVectorField()
