"""The texts in Italian."""

from messaging.pages.wording.texts import Wording

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
    preview="Questa è un’anteprima. I pulsanti sono disattivati: solo il link di "
    "un messaggio inviato modifica le preferenze.",
    preview_unchanged="Non è stato modificato nulla.",
    mail_subject="La preghiamo di confermare: e-mail da {organization}",
    mail_text="Ha chiesto e-mail da {organization} su: {category}. La preghiamo di confermare:",
    mail_ignore="Se non è stato Lei, non faccia nulla. Il link vale 30 giorni.",
)
