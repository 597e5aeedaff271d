"""The texts in Spanish."""

from messaging.pages.wording.texts import Wording

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
    preview="Esto es una vista previa. Sus botones están desactivados: solo el "
    "enlace de un mensaje enviado cambia las preferencias.",
    preview_unchanged="No se ha cambiado nada.",
    mail_subject="Por favor confirme: correo de {organization}",
    mail_text="Ha pedido correos de {organization} sobre: {category}. Por favor confirme:",
    mail_ignore="Si no fue usted, no haga nada. El enlace vale 30 días.",
)
