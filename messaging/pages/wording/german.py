"""The texts in German."""

from messaging.pages.wording.texts import Wording

GERMAN = Wording(
    name="Deutsch",
    language="Sprache",
    channels={"EMAIL": "E-Mail", "SMS": "SMS", "PUSH": "App-Mitteilung"},
    categories={"MARKETING": "Neuigkeiten und Angebote", "TRANSACTIONAL": "Service-Nachrichten"},
    service_hint="Was Sie wissen müssen, etwa Bestätigungen und Änderungen Ihrer Buchungen.",
    heading="Ihre Einstellungen",
    intro="Wählen Sie, was {organization} Ihnen senden darf, und auf welchem Weg.",
    nowhere="{organization} hat keine Adresse, an die Ihnen geschrieben werden kann.",
    save="Speichern",
    stop_heading="Gar nichts mehr",
    stop_text="{organization} sendet Ihnen nichts mehr, auch keine Service-Nachrichten.",
    stop="Alle Nachrichten beenden",
    saved="Ihre Einstellungen sind gespeichert.",
    unchanged="Es hat sich nichts geändert.",
    stopped="Sie erhalten von {organization} nichts mehr.",
    mailed="Ihre Einstellungen sind gespeichert. Um E-Mail zu bestätigen, folgen Sie dem Link in "
    "der Mail, die wir Ihnen gesandt haben.",
    unmailed="Ihre Einstellungen sind gespeichert, aber die Mail zur Bestätigung konnte nicht "
    "gesandt werden. Erlauben Sie auch Service-Nachrichten per E-Mail, und versuchen Sie es "
    "noch einmal.",
    unsubscribe_heading="Abmelden",
    unsubscribe_text="Keine „{category}“ mehr von {organization}? Das beendet: {channel}.",
    unsubscribe="Abmelden",
    unsubscribed="Sie sind abgemeldet von „{category}“ von {organization} ({channel}).",
    other="Weitere Einstellungen ändern",
    confirm_heading="Bestätigen",
    confirm_text="{organization} darf Ihnen E-Mails senden zu: {category}.",
    confirm="Bestätigen",
    confirmed="Danke. Sie erhalten E-Mails zu: {category}.",
    gone_heading="Dieser Link funktioniert nicht",
    gone_text="Er ist unvollständig oder nicht mehr gültig. Bitte verwenden Sie den Link in Ihrer "
    "neuesten Nachricht.",
    preview="Das ist eine Vorschau. Ihre Knöpfe sind aus: Nur der Link in einer "
    "gesandten Nachricht ändert Einstellungen.",
    preview_unchanged="Es wurde nichts geändert.",
    mail_subject="Bitte bestätigen: E-Mail von {organization}",
    mail_text="Sie haben E-Mails von {organization} gewünscht zu: {category}. Bitte bestätigen:",
    mail_ignore="Waren Sie das nicht, tun Sie nichts. Der Link gilt 30 Tage.",
)
