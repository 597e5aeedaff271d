"""The pages of recipients: preferences, unsubscribing, confirming.

A link stands for its person, so there is no log-in, no session and no cookie, and no CSRF token:
whoever could forge a request would have to know the link. GET never acts, because mail scanners
follow links.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from csp.constants import NONCE, NONE, SELF
from csp.decorators import csp_replace
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from messaging.content import brand, links
from messaging.models import ConsentEntry
from messaging.pages import preferences
from messaging.pages.preferences import Pair, Person, Result, Wish
from messaging.pages.wording import LANGUAGES, OTHERWISE, Wording
from rme.core.http.proxies import address_of
from rme.tenants.organizations import OrganizationRecord

View = Callable[..., HttpResponse]
ONE_CLICK = "One-Click"
POLICY = {"script-src": [NONE], "style-src": [SELF, NONCE], "frame-ancestors": [NONE]}


def page(view: View) -> View:
    """Make a view a page of recipients: a link that is not good answers 404, in kind words."""

    @csrf_exempt
    @csp_replace(POLICY)  # type: ignore[arg-type]  # its types know no view with arguments
    @require_http_methods(["GET", "HEAD", "POST"])
    @wraps(view)
    def shown(request: HttpRequest, token: str) -> HttpResponse:
        try:
            response = view(request, token)
        except links.BadLink:
            response = _show(request, "gone", None, status=404)
        response["Cache-Control"] = "no-store"
        response["Referrer-Policy"] = "no-referrer"  # the address is the key
        response["X-Robots-Tag"] = "noindex"
        return response

    return shown  # type: ignore[return-value]


def _language(request: HttpRequest, organization: OrganizationRecord | None) -> str:
    """Choose a language: asked for, the browser's, the organization's, English."""
    asked = request.GET.get("lang", "")
    if asked in LANGUAGES:
        return asked
    spoken = _preferred(request.headers.get("Accept-Language", ""))
    own = organization.language.partition("_")[0] if organization else ""
    return spoken or (own if own in LANGUAGES else OTHERWISE)


def _preferred(header: str) -> str | None:
    """Give the language of ours that `Accept-Language` wants most (RFC 9110 §12.5.4)."""
    wanted: list[tuple[float, str]] = []
    for part in header[:500].split(","):
        name, _, weight = part.partition(";")
        primary = name.strip().lower().partition("-")[0]
        try:
            quality = float(weight.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        if primary in LANGUAGES and 0 < quality <= 1:
            wanted.append((-quality, primary))
    return min(wanted, key=lambda pair: pair[0])[1] if wanted else None


def _show(
    request: HttpRequest,
    name: str,
    who: Person | None,
    *,
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """Render a page in the reader's language and the organization's colour."""
    organization = who.organization if who else None
    language = _language(request, organization)
    wording = LANGUAGES[language]
    link = who.link if who else None
    names = {
        "organization": organization.name if organization else "",
        "category": wording.category(link.category) if link else "",
        "channel": wording.channels.get(link.channel, "") if link else "",
        **context.pop("names", {}),
    }
    said = {
        field: text.format(**names)
        for field in Wording.__dataclass_fields__
        if isinstance(text := getattr(wording, field), str)
    }
    return render(
        request,
        f"public/{name}.html",
        {
            "say": said,
            "wording": wording,
            "language": language,
            "languages": {code: each.name for code, each in LANGUAGES.items()},
            "organization": organization,
            "brand": brand.of(organization.brand_color if organization else brand.DEFAULT),
            "preferences": f"/p/{link.token}?lang={language}" if link else "",
            **context,
        },
        status=status,
    )


def _evidence(request: HttpRequest, form: str) -> dict[str, str]:
    who = {
        "form": form,
        "ip": address_of(request),
        "userAgent": request.headers.get("User-Agent", "")[:500].replace("\x00", ""),
        "language": request.headers.get("Accept-Language", "")[:200].replace("\x00", ""),
    }
    return {name: text for name, text in who.items() if text}


@page
def show_preferences(request: HttpRequest, token: str) -> HttpResponse:
    """Show what the person may be sent; POST changes it, then GET shows what became of it."""
    who = preferences.person(links.read(token))
    if request.method == "POST":
        result = _change(request, who)
        language = _language(request, who.organization)
        # The fragment moves the focus, so that screen readers begin at the result.
        return _see_other(f"{request.path}?lang={language}&done={result}#result")
    language = _language(request, who.organization)
    done = request.GET.get("done", "")
    categories: dict[str, dict[str, Any]] = {}
    for choice in preferences.choices(who):
        named = LANGUAGES[language].category(choice.category)
        entry = categories.setdefault(
            choice.category,
            {"name": named, "opt_in": choice.opt_in, "choices": [], "id": choice.category},
        )
        entry["choices"].append(
            {
                "value": f"{choice.category}.{choice.channel}",
                "label": LANGUAGES[language].channels[choice.channel],
                "on": choice.on,
            }
        )
    return _show(
        request,
        "preferences",
        who,
        categories=list(categories.values()),
        done=done if done in list(Result) else "",
    )


def _change(request: HttpRequest, who: Person) -> Result:
    if "stop" in request.POST:
        return preferences.stop(who, _evidence(request, "preferences: stop"))
    return preferences.change(
        who,
        _wish(request.POST),
        _evidence(request, "preferences"),
        wording=LANGUAGES[_language(request, who.organization)],
        request_id=request.id,  # type: ignore[attr-defined]
    )


def _wish(form: QueryDict) -> Wish:
    """Read the form: what it showed as on and off, and what of it is on now."""
    off = dict.fromkeys(map(_pair, form.getlist("off")), False)
    on = dict.fromkeys(map(_pair, form.getlist("on")), True)
    return Wish({**off, **on}, frozenset(map(_pair, form.getlist("want"))))


def _pair(text: str) -> Pair:
    category, _, channel = text.partition(".")
    return category, channel


def _see_other(address: str) -> HttpResponse:
    response = HttpResponseRedirect(address)
    response.status_code = 303
    return response


@page
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Unsubscribe from the message's category by one POST (RFC 8058), or by this page's button."""
    who = preferences.person(links.read(token))
    if request.method != "POST":
        return _show(request, "unsubscribe", who)
    if request.POST.get("List-Unsubscribe") == ONE_CLICK:
        source, form = ConsentEntry.Source.ONE_CLICK, "List-Unsubscribe-Post"
    elif "unsubscribe" in request.POST:
        source, form = ConsentEntry.Source.PREFERENCE_PAGE, "unsubscribe"
    else:
        return _show(request, "unsubscribe", who, status=400)
    preferences.unsubscribe(who, source, _evidence(request, form))
    return _show(request, "unsubscribe", who, done=True)


@page
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Confirm a wish that came from the preference page (double opt-in)."""
    confirmation = links.read_confirmation(token)
    who = preferences.person(confirmation.link)
    done = request.method == "POST"
    if done:
        preferences.confirm(who, confirmation.categories, _evidence(request, "confirmation"))
    wording = LANGUAGES[_language(request, who.organization)]
    named = ", ".join(wording.category(name) for name in confirmation.categories)
    return _show(request, "confirm", who, done=done, names={"category": named})
