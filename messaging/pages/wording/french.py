"""The texts in French."""

from messaging.pages.wording.texts import Wording

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
    preview="Ceci est un aperçu. Ses boutons sont désactivés : seul le lien d’un "
    "message envoyé modifie les préférences.",
    preview_unchanged="Rien n’a été modifié.",
    mail_subject="Veuillez confirmer : e-mails de {organization}",
    mail_text="Vous avez demandé des e-mails de {organization} sur : {category}. Confirmez ici :",
    mail_ignore="Si ce n’était pas vous, ne faites rien. Le lien est valable 30 jours.",
)
