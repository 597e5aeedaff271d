"""The views of recipients' pages: preferences, unsubscribe, confirm.

GET changes nothing, because mail scanners follow links.
"""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_plus

from django.http import HttpRequest, HttpResponse, QueryDict

from messaging import links
from messaging.models import ConsentEntry
from messaging.pages import preference_changes, preferences
from messaging.pages.preference_changes import ChangeResult, SubmittedChoices
from messaging.pages.preferences import (
    CategoryChannel,
    LinkRecipient,
    PreferenceChoice,
    PreviewRecipient,
)
from messaging.pages.recipient_page import language_of, recipient_page, render_page
from messaging.pages.wording import LANGUAGES, Wording
from rme.core.http.api import id_of
from rme.core.http.edge import address_of
from rme.core.http.pages import see_other

ONE_CLICK_BYTES = 64 * 1024
"""The bytes of a body that are searched: such a request has some hundred."""
# The pair of RFC 8058 §3.1 as a field of a form, a part of a multipart body, or JSON. Mail clients
# add line ends, change the case, and name a wrong content type or none.
_ONE_CLICK = re.compile(
    r"""(?<![\w-])List-Unsubscribe[\s"':=]*+
    (?:Content-[\w-]{1,30}+:[^\n]{0,200}+\n[\s"':=]*+){0,5}One-Click(?![\w-])""",
    re.IGNORECASE | re.VERBOSE,
)


def _preview_context(recipient: PreviewRecipient, wording: Wording) -> dict[str, Any]:
    return {"categories": _categories(preferences.preview_choices(recipient), wording)}


@recipient_page("preferences", _preview_context)
def show_preferences(request: HttpRequest, token: str) -> HttpResponse:
    """Show the preferences. POST changes them and redirects to the result."""
    recipient = preferences.find_recipient(links.read(token))
    language = language_of(request, recipient.organization)
    if request.method == "POST":
        result = _change(request, recipient)
        # The fragment moves the focus, so that screen readers begin at the result.
        return see_other(f"{request.path}?lang={language}&done={result}#result")
    result_code = request.GET.get("done", "")
    return render_page(
        request,
        "preferences",
        recipient,
        categories=_categories(preferences.choices(recipient), LANGUAGES[language]),
        done=result_code if result_code in list(ChangeResult) else "",
    )


def _categories(choices: Iterable[PreferenceChoice], wording: Wording) -> list[dict[str, Any]]:
    """Return the categories with their choices as the page's template reads them."""
    categories: dict[str, dict[str, Any]] = {}
    for choice in choices:
        name = wording.category(choice.category)
        category = categories.setdefault(
            choice.category,
            {"name": name, "opt_in": choice.opt_in, "choices": [], "id": choice.category},
        )
        category["choices"].append(
            {
                "value": f"{choice.category}.{choice.channel}",
                "label": wording.channels[choice.channel],
                "on": choice.on,
            }
        )
    return list(categories.values())


def _change(request: HttpRequest, recipient: LinkRecipient) -> ChangeResult:
    if "stop" in request.POST:
        return preference_changes.stop(recipient, _evidence(request, "preferences: stop"))
    return preference_changes.change(
        recipient,
        _submitted(request.POST),
        _evidence(request, "preferences"),
        wording=LANGUAGES[language_of(request, recipient.organization)],
        request_id=id_of(request),
    )


def _submitted(form: QueryDict) -> SubmittedChoices:
    """Read the form: what it showed as on and off, and what is on now."""
    off = dict.fromkeys(map(_key, form.getlist("off")), False)
    on = dict.fromkeys(map(_key, form.getlist("on")), True)
    return SubmittedChoices({**off, **on}, frozenset(map(_key, form.getlist("want"))))


def _key(text: str) -> CategoryChannel:
    category, _, channel = text.partition(".")
    return category, channel


def _evidence(request: HttpRequest, form: str) -> dict[str, str]:
    """Return what is recorded about a request as evidence of a decision."""
    evidence = {
        "form": form,
        "ip": address_of(request),
        "userAgent": request.headers.get("User-Agent", "")[:500].replace("\x00", ""),
        "language": request.headers.get("Accept-Language", "")[:200].replace("\x00", ""),
    }
    return {name: text for name, text in evidence.items() if text}


@recipient_page("unsubscribe")
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Unsubscribe from the message's category by one POST (RFC 8058), or by the page's button."""
    recipient = preferences.find_recipient(links.read(token))
    if request.method != "POST":
        return render_page(request, "unsubscribe", recipient)
    if _is_one_click(request.body):
        source, form = ConsentEntry.Source.ONE_CLICK, "List-Unsubscribe-Post"
    elif "unsubscribe" in request.POST:
        source, form = ConsentEntry.Source.PREFERENCE_PAGE, "unsubscribe"
    else:
        return render_page(request, "unsubscribe", recipient, status=400)
    preference_changes.unsubscribe(recipient, source, _evidence(request, form))
    return render_page(request, "unsubscribe", recipient, done=True)


def _is_one_click(body: bytes) -> bool:
    """Return whether a body asks to unsubscribe by one click, however it is encoded."""
    text = unquote_plus(body[:ONE_CLICK_BYTES].decode(errors="replace"))
    return bool(_ONE_CLICK.search(text))


@recipient_page("confirm")
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Confirm a choice of the preference page by a mail's link (double opt-in)."""
    confirmation = links.read_confirmation(token)
    recipient = preferences.find_recipient(confirmation.link)
    is_confirmed = request.method == "POST"
    if is_confirmed:
        evidence = _evidence(request, "confirmation")
        preference_changes.confirm(recipient, confirmation.categories, evidence)
    wording = LANGUAGES[language_of(request, recipient.organization)]
    categories = ", ".join(wording.category(name) for name in confirmation.categories)
    return render_page(
        request, "confirm", recipient, done=is_confirmed, names={"category": categories}
    )
