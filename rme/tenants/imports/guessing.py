"""What the columns of a file are: guessed from the header in several languages, and from cells."""

import re
import unicodedata
from collections.abc import Mapping, Sequence

SYNONYMS: Mapping[str, str] = {
    "firstName": "first given forename vorname prenom nombre primernombre nome givenname "
    "firstname rufname",
    "lastName": "last surname family familyname nachname name fullname nom nomdefamille apellido "
    "apellidos cognome lastname zuname",
    "email": "mail emailaddress emailadresse mailadresse correo correoelectronico courriel "
    "adressemail adresseemail indirizzoemail emailid",
    "mobile": "mobilenumber mobilephone cell cellphone handy handynummer natel portable movil "
    "cellulare mobil mobiltelefon sms",
    "phone": "telephone telefon telefono tel phonenumber telefonnummer festnetz",
    "language": "lang sprache langue idioma lingua locale preferredlanguage korrespondenzsprache",
    "zone": "timezone zeitzone fuseauhoraire zonahoraria tz",
    "address": "email emailaddress emailadresse mail phone mobile adresse recipient",
    "channel": "kanal canal type",
    "reason": "grund raison motivo",
}
"""Other titles of a column, without accents, blanks and case; the first column that fits has it."""
EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
PHONE = re.compile(r"(?:\+|00|0)[\d\s()./-]{7,20}")


def words(name: str) -> str:
    """Return the name of a column as people write it: `lastName` is `last name`."""
    return re.sub(r"(?=[A-Z])", " ", name).lower()


def columns(
    titles: Sequence[str], rows: Sequence[Sequence[str]], names: Sequence[str]
) -> list[str]:
    """Return the name of each column, "" if nothing fits. No name is used twice.

    Exact titles count before other words, and words before what stands in the first rows.
    """
    guesses = [""] * len(titles)
    plain_titles = [_plain(title) for title in titles]
    plain_names = {_plain(name): name for name in names}
    words = {word: name for name in reversed(names) for word in SYNONYMS.get(name, "").split()}
    for known in (plain_names, words):
        for index, title in enumerate(plain_titles):
            _take(guesses, index, known.get(title, ""))
    for index in range(len(titles)):
        cells = [row[index] for row in rows if index < len(row) and row[index]]
        for name in _by_content(cells):
            _take(guesses, index, name if name in names else "")
    return guesses


def _take(guesses: list[str], index: int, name: str) -> None:
    if name and not guesses[index] and name not in guesses:
        guesses[index] = name


def _by_content(cells: Sequence[str]) -> Sequence[str]:
    """Return the names that fit what stands in a column, the best first."""
    if cells and all(EMAIL.fullmatch(cell) for cell in cells):
        return ("email", "address")
    if cells and all(PHONE.fullmatch(cell) for cell in cells):
        return ("mobile", "phone", "address")
    return ()


def _plain(title: str) -> str:
    """Return a title in lower case, without accents, blanks and punctuation."""
    letters = unicodedata.normalize("NFKD", title.lower())
    return "".join(letter for letter in letters if letter.isalnum())
