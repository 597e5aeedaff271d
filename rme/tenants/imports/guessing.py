"""What the columns of a file are: guessed from the header in several languages, and from cells."""

import re
import unicodedata
from collections.abc import Mapping, Sequence

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

LABELS: Mapping[str, str | Promise] = {
    "id": gettext_lazy("ID"),
    "name": gettext_lazy("name"),
    "firstName": gettext_lazy("first name"),
    "lastName": gettext_lazy("last name"),
    "email": gettext_lazy("email"),
    "phone": gettext_lazy("phone"),
    "mobile": gettext_lazy("mobile"),
    "language": gettext_lazy("language"),
    "zone": gettext_lazy("time zone"),
    "website": gettext_lazy("website"),
    "accountId": gettext_lazy("account id"),
    "contactId": gettext_lazy("contact id"),
    "eventId": gettext_lazy("event id"),
    "number": gettext_lazy("number"),
    "subject": gettext_lazy("subject"),
    "issue": gettext_lazy("issue"),
    "status": gettext_lazy("status"),
    "priority": gettext_lazy("priority"),
    "startsAt": gettext_lazy("start"),
    "endsAt": gettext_lazy("end"),
    "ticketType": gettext_lazy("ticket type"),
    "attended": gettext_lazy("attended"),
    "sessionTitle": gettext_lazy("session title"),
    "sessionStart": gettext_lazy("session start"),
    "room": gettext_lazy("room"),
    "booth": gettext_lazy("booth"),
    "level": gettext_lazy("level"),
    "channel": gettext_lazy("channel"),
    "address": gettext_lazy("address"),
    "reason": gettext_lazy("reason"),
    "note": gettext_lazy("note"),
    "expiresAt": gettext_lazy("expiry"),
    "row": gettext_lazy("row"),
}
"""The names of columns as people write them."""
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
    "address": "email emails emailaddress emailadresse mail phone mobile adresse recipient",
    "channel": "kanal canal type",
    "reason": "grund raison motivo",
    "note": "notes remark comment bemerkung kommentar commentaire nota",
    "expiresAt": "expires expiry until ablauf gueltigbis bis",
}
"""Other titles of a column, without accents, blanks and case; the first column that fits has it."""
EMAIL = re.compile(r"[^@\s]++@[^@\s.]++\.[^@\s]++")
PHONE = re.compile(r"(?:\+|00|0)[\d\s()./-]{7,20}")


def words(name: str) -> str:
    """Return the name of a column as people write it: `lastName` is `last name`."""
    return str(LABELS.get(name, name))


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
        for name in by_content(cells):
            _take(guesses, index, name if name in names else "")
    return guesses


def _take(guesses: list[str], index: int, name: str) -> None:
    if name and not guesses[index] and name not in guesses:
        guesses[index] = name


def by_content(cells: Sequence[str]) -> Sequence[str]:
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
