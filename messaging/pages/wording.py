"""What the pages of recipients and their mails say, in each language.

`{organization}`, `{category}` and `{channel}` are filled in.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    """All texts of one language. `name` is the language's own name."""

    name: str
    language: str
    channels: Mapping[str, str]
    categories: Mapping[str, str]
    service_hint: str

    heading: str
    intro: str
    nowhere: str
    save: str
    stop_heading: str
    stop_text: str
    stop: str
    saved: str
    unchanged: str
    stopped: str
    mailed: str
    unmailed: str

    unsubscribe_heading: str
    unsubscribe_text: str
    unsubscribe: str
    unsubscribed: str
    other: str

    confirm_heading: str
    confirm_text: str
    confirm: str
    confirmed: str

    gone_heading: str
    gone_text: str

    mail_subject: str
    mail_text: str
    mail_ignore: str

    def category(self, name: str) -> str:
        """Name a category for people: `EVENT_NEWS` is Event news."""
        return self.categories.get(name) or name.replace("_", " ").capitalize()


ENGLISH = Wording(
    name="English",
    language="Language",
    channels={"EMAIL": "Email", "SMS": "Text message", "PUSH": "App notification"},
    categories={"MARKETING": "News and offers", "TRANSACTIONAL": "Service messages"},
    service_hint="What you need to know, such as confirmations and changes to your bookings.",
    heading="Your preferences",
    intro="Choose what {organization} may send you, and how.",
    nowhere="{organization} has no address of yours to write to.",
    save="Save",
    stop_heading="No more of anything",
    stop_text="{organization} will send you nothing any more, service messages included.",
    stop="Stop all messages",
    saved="Your preferences are saved.",
    unchanged="Nothing has changed.",
    stopped="You will get nothing any more from {organization}.",
    mailed="Your preferences are saved. To confirm email, follow the link in the mail we sent you.",
    unmailed="Your preferences are saved, but we could not send the mail that confirms email. "
    "Allow service messages by email too, and try again.",
    unsubscribe_heading="Unsubscribe",
    unsubscribe_text="No more “{category}” from {organization}? This ends: {channel}.",
    unsubscribe="Unsubscribe",
    unsubscribed="You are unsubscribed from “{category}” of {organization} ({channel}).",
    other="Change other preferences",
    confirm_heading="Confirm",
    confirm_text="{organization} may send you email about: {category}.",
    confirm="Confirm",
    confirmed="Thank you. You will get email about: {category}.",
    gone_heading="This link does not work",
    gone_text="It is incomplete, or no longer good. Please use the link in your latest message.",
    mail_subject="Please confirm: email from {organization}",
    mail_text="You asked for email from {organization} about: {category}. Please confirm:",
    mail_ignore="If that was not you, do nothing. The link is good for 30 days.",
)

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
    mail_subject="Bitte bestätigen: E-Mail von {organization}",
    mail_text="Sie haben E-Mails von {organization} gewünscht zu: {category}. Bitte bestätigen:",
    mail_ignore="Waren Sie das nicht, tun Sie nichts. Der Link gilt 30 Tage.",
)

FRENCH = Wording(
    name="Français",
    language="Langue",
    channels={"EMAIL": "E-mail", "SMS": "SMS", "PUSH": "Notification de l’application"},
    categories={"MARKETING": "Actualités et offres", "TRANSACTIONAL": "Messages de service"},
    service_hint="L’essentiel, comme les confirmations et les modifications de vos réservations.",
    heading="Vos préférences",
    intro="Choisissez ce que {organization} peut vous envoyer, et comment.",
    nowhere="{organization} n’a aucune adresse où vous écrire.",
    save="Enregistrer",
    stop_heading="Plus rien du tout",
    stop_text="{organization} ne vous enverra plus rien, pas même de messages de service.",
    stop="Arrêter tous les messages",
    saved="Vos préférences sont enregistrées.",
    unchanged="Rien n’a changé.",
    stopped="Vous ne recevrez plus rien de {organization}.",
    mailed="Vos préférences sont enregistrées. Pour confirmer l’e-mail, suivez le lien dans le "
    "message que nous vous avons envoyé.",
    unmailed="Vos préférences sont enregistrées, mais l’e-mail de confirmation n’a pas pu être "
    "envoyé. Autorisez aussi les messages de service par e-mail, puis réessayez.",
    unsubscribe_heading="Se désabonner",
    unsubscribe_text="Ne plus recevoir « {category} » de {organization} ? Cela met fin à : "
    "{channel}.",
    unsubscribe="Se désabonner",
    unsubscribed="Vous êtes désabonné de « {category} » de {organization} ({channel}).",
    other="Modifier d’autres préférences",
    confirm_heading="Confirmer",
    confirm_text="{organization} peut vous envoyer des e-mails sur : {category}.",
    confirm="Confirmer",
    confirmed="Merci. Vous recevrez des e-mails sur : {category}.",
    gone_heading="Ce lien ne fonctionne pas",
    gone_text="Il est incomplet ou n’est plus valable. Utilisez le lien de votre dernier message.",
    mail_subject="Veuillez confirmer : e-mails de {organization}",
    mail_text="Vous avez demandé des e-mails de {organization} sur : {category}. Confirmez ici :",
    mail_ignore="Si ce n’était pas vous, ne faites rien. Le lien est valable 30 jours.",
)

ITALIAN = Wording(
    name="Italiano",
    language="Lingua",
    channels={"EMAIL": "E-mail", "SMS": "SMS", "PUSH": "Notifica dell’app"},
    categories={"MARKETING": "Novità e offerte", "TRANSACTIONAL": "Messaggi di servizio"},
    service_hint="Ciò che deve sapere, come conferme e modifiche delle Sue prenotazioni.",
    heading="Le Sue preferenze",
    intro="Scelga che cosa {organization} può inviarLe, e come.",
    nowhere="{organization} non ha alcun indirizzo al quale scriverLe.",
    save="Salva",
    stop_heading="Più nulla",
    stop_text="{organization} non Le invierà più nulla, nemmeno messaggi di servizio.",
    stop="Interrompi tutti i messaggi",
    saved="Le Sue preferenze sono salvate.",
    unchanged="Nulla è cambiato.",
    stopped="Non riceverà più nulla da {organization}.",
    mailed="Le Sue preferenze sono salvate. Per confermare l’e-mail, segua il link nel messaggio "
    "che Le abbiamo inviato.",
    unmailed="Le Sue preferenze sono salvate, ma non è stato possibile inviare l’e-mail di "
    "conferma. Permetta anche i messaggi di servizio per e-mail e riprovi.",
    unsubscribe_heading="Annulla l’iscrizione",
    unsubscribe_text="Non vuole più «{category}» da {organization}? Questo termina: {channel}.",
    unsubscribe="Annulla l’iscrizione",
    unsubscribed="L’iscrizione a «{category}» di {organization} è annullata ({channel}).",
    other="Cambia altre preferenze",
    confirm_heading="Conferma",
    confirm_text="{organization} può inviarLe e-mail su: {category}.",
    confirm="Conferma",
    confirmed="Grazie. Riceverà e-mail su: {category}.",
    gone_heading="Questo link non funziona",
    gone_text="È incompleto o non più valido. Usi il link del Suo ultimo messaggio.",
    mail_subject="La preghiamo di confermare: e-mail da {organization}",
    mail_text="Ha chiesto e-mail da {organization} su: {category}. La preghiamo di confermare:",
    mail_ignore="Se non è stato Lei, non faccia nulla. Il link vale 30 giorni.",
)

SPANISH = Wording(
    name="Español",
    language="Idioma",
    channels={"EMAIL": "Correo electrónico", "SMS": "SMS", "PUSH": "Notificación de la aplicación"},
    categories={"MARKETING": "Novedades y ofertas", "TRANSACTIONAL": "Mensajes de servicio"},
    service_hint="Lo que debe saber, como confirmaciones y cambios de sus reservas.",
    heading="Sus preferencias",
    intro="Elija qué puede enviarle {organization}, y cómo.",
    nowhere="{organization} no tiene ninguna dirección a la que escribirle.",
    save="Guardar",
    stop_heading="Nada más",
    stop_text="{organization} no le enviará nada más, tampoco mensajes de servicio.",
    stop="Detener todos los mensajes",
    saved="Sus preferencias se han guardado.",
    unchanged="No ha cambiado nada.",
    stopped="No recibirá nada más de {organization}.",
    mailed="Sus preferencias se han guardado. Para confirmar el correo electrónico, siga el "
    "enlace del mensaje que le hemos enviado.",
    unmailed="Sus preferencias se han guardado, pero no se pudo enviar el correo de "
    "confirmación. Permita también los mensajes de servicio por correo e inténtelo de nuevo.",
    unsubscribe_heading="Cancelar la suscripción",
    unsubscribe_text="¿No quiere más «{category}» de {organization}? Esto termina: {channel}.",
    unsubscribe="Cancelar la suscripción",
    unsubscribed="Su suscripción a «{category}» de {organization} está cancelada ({channel}).",
    other="Cambiar otras preferencias",
    confirm_heading="Confirmar",
    confirm_text="{organization} puede enviarle correos sobre: {category}.",
    confirm="Confirmar",
    confirmed="Gracias. Recibirá correos sobre: {category}.",
    gone_heading="Este enlace no funciona",
    gone_text="Está incompleto o ya no es válido. Use el enlace de su último mensaje.",
    mail_subject="Por favor confirme: correo de {organization}",
    mail_text="Ha pedido correos de {organization} sobre: {category}. Por favor confirme:",
    mail_ignore="Si no fue usted, no haga nada. El enlace vale 30 días.",
)

LANGUAGES: Mapping[str, Wording] = {
    "en": ENGLISH,
    "de": GERMAN,
    "fr": FRENCH,
    "it": ITALIAN,
    "es": SPANISH,
}
OTHERWISE = "en"
