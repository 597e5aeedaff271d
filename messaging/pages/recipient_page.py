"""Shared code of recipients' pages: the link, the headers, the language and the rendering.

A link identifies its recipient, so there is no log-in, no session and no cookie, and no CSRF token:
a forged request would have to contain the link. A preview link only shows the same
page: the decorator answers it, so it never reaches a view that changes something.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from csp.constants import NONCE, NONE, SELF
from csp.decorators import csp_replace
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from messaging import links
from messaging.pages import brand, preferences
from messaging.pages.preferences import LinkRecipient, PreviewRecipient
from messaging.pages.wording import DEFAULT_LANGUAGE, LANGUAGES, Wording
from rme.tenants.organizations import OrganizationRecord

View = Callable[..., HttpResponse]
POLICY = {"script-src": [NONE], "style-src": [SELF, NONCE], "frame-ancestors": [NONE]}

# The types of django-csp know only views without arguments.
_replace_csp = cast(Callable[[View], View], csp_replace(POLICY))


PreviewContext = Callable[[PreviewRecipient, Wording], dict[str, Any]]


def _no_context(recipient: PreviewRecipient, wording: Wording) -> dict[str, Any]:
    return {}


def recipient_page(
    name: str, preview_context: PreviewContext = _no_context
) -> Callable[[View], View]:
    """Make a view a recipients' page: 404 with an explanation for a link that is not valid.

    `name` is the page's template, which a preview link shows without its actions;
    `preview_context` returns what the template needs besides.
    """

    def decorate(view: View) -> View:
        @csrf_exempt
        @_replace_csp
        @require_http_methods(["GET", "HEAD", "POST"])
        @wraps(view)
        def wrapped(request: HttpRequest, token: str) -> HttpResponse:
            try:
                response = view(request, token)
            except links.BadLink:
                response = _other_link(request, token, name, preview_context)
            response["Cache-Control"] = "no-store"
            response["Referrer-Policy"] = "no-referrer"  # the URL authorizes its holder
            response["X-Robots-Tag"] = "noindex"
            return response

        return wrapped

    return decorate


def _other_link(
    request: HttpRequest, token: str, name: str, preview_context: PreviewContext
) -> HttpResponse:
    """Answer a link that isn't a recipient's with a preview page or an explanation."""
    try:
        recipient = preferences.find_preview(links.read_preview(token))
    except links.BadLink:
        return render_page(request, "gone", None, status=404)
    is_refused = request.method == "POST"
    return render_page(
        request,
        name,
        recipient,
        status=403 if is_refused else 200,
        is_preview=True,
        is_refused=is_refused,
        **preview_context(recipient, LANGUAGES[language_of(request, recipient.organization)]),
    )


def language_of(request: HttpRequest, organization: OrganizationRecord | None) -> str:
    """Return the language: the requested one, the browser's, the organization's, or English."""
    requested = request.GET.get("lang", "")
    if requested in LANGUAGES:
        return requested
    accepted = accepted_language(request.headers.get("Accept-Language", ""))
    default = organization.language.partition("_")[0] if organization else ""
    return accepted or (default if default in LANGUAGES else DEFAULT_LANGUAGE)


def accepted_language(header: str) -> str | None:
    """Return the supported language that `Accept-Language` prefers (RFC 9110 §12.5.4)."""
    accepted: list[tuple[float, str]] = []
    for part in header[:500].split(","):
        name, _, weight = part.partition(";")
        primary = name.strip().lower().partition("-")[0]
        try:
            quality = float(weight.strip().removeprefix("q=") or 1)
        except ValueError:
            continue
        if primary in LANGUAGES and 0 < quality <= 1:
            accepted.append((-quality, primary))
    if not accepted:
        return None
    _, language = min(accepted, key=lambda entry: entry[0])
    return language


def render_page(
    request: HttpRequest,
    name: str,
    recipient: LinkRecipient | PreviewRecipient | None,
    *,
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """Render a page in the reader's language and the organization's color."""
    organization = recipient.organization if recipient else None
    language = language_of(request, organization)
    wording = LANGUAGES[language]
    link = recipient.link if recipient else None
    names = {
        "organization": organization.name if organization else "",
        "category": wording.category(link.category) if link else "",
        "channel": wording.channels.get(link.channel, "") if link else "",
        **context.pop("names", {}),
    }
    texts = {
        field: text.format(**names)
        for field in Wording.__dataclass_fields__
        if isinstance(text := getattr(wording, field), str)
    }
    return render(
        request,
        f"public/{name}.html",
        {
            "texts": texts,
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
