"""Starter layouts of emails: complete texts to change, instead of an empty page."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

_FRAME = """<!doctype html>
<html lang="en">
<body style="margin:0;background:#f4f4f5;font-family:Arial,sans-serif;color:#18181b">
<table role="presentation" width="100%" cellpadding="0" cellspacing="0">
<tr><td align="center" style="padding:24px">
<table role="presentation" width="600" cellpadding="0" cellspacing="0"
 style="max-width:100%;background:#ffffff;border-radius:8px">
<tr><td style="padding:32px;font-size:16px;line-height:24px">
{content}
<p style="margin:24px 0 0;color:#52525b;font-size:14px">{{{{ org.name }}}}</p>
</td></tr></table></td></tr></table>
</body>
</html>
"""
_HEAD = '<h1 style="margin:0 0 16px;font-size:22px;line-height:28px">{}</h1>'


@dataclass(frozen=True, slots=True)
class Layout:
    """An email to begin with. `name` is that of the new template."""

    name: str
    title: Promise
    text: Promise
    """What it is for."""
    fields: Mapping[str, object]


def _layout(name: str, title: Promise, use: Promise, subject: str, text: str) -> Layout:
    """Build a layout; each paragraph of the text is one of the HTML."""
    paragraphs = text.split("\n\n")
    content = "\n".join([_HEAD.format(subject), *(f"<p>{each}</p>" for each in paragraphs)])
    return Layout(
        name,
        title,
        use,
        {
            "subject": subject,
            "text": f"{text}\n\n{{{{ org.name }}}}",
            "html": _FRAME.format(content=content),
        },
    )


LAYOUTS = (
    _layout(
        "welcome",
        gettext_lazy("Welcome"),
        gettext_lazy("Greets a new customer."),
        "Welcome to {{ org.name }}",
        "Hello {{ contact.first_name }}\n\nYour account is ready. "
        "Reply to this email if you need help.",
    ),
    _layout(
        "notice",
        gettext_lazy("Notice"),
        gettext_lazy("Says that something has changed."),
        "News about your account",
        "Hello {{ contact.first_name }}\n\nSomething about your account has changed. "
        "You don't need to do anything.",
    ),
    _layout(
        "appointment",
        gettext_lazy("Appointment"),
        gettext_lazy("Reminds somebody of a date."),
        "Your appointment",
        "Hello {{ contact.first_name }}\n\nWe look forward to seeing you. "
        "Tell us if you can't come.",
    ),
)
BY_NAME: Mapping[str, Layout] = {each.name: each for each in LAYOUTS}
