"""The texts in English."""

from messaging.pages.wording.texts import Wording

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
    preview="This is a preview, so its buttons are off. Only the link in a message "
    "that was sent changes preferences.",
    preview_unchanged="Nothing was changed.",
    mail_subject="Please confirm: email from {organization}",
    mail_text="You asked for email from {organization} about: {category}. Please confirm:",
    mail_ignore="If that was not you, do nothing. The link is good for 30 days.",
)
