"""An empty view behind the bot's key check: what there is before anything is looked up."""

from django.http import HttpRequest, HttpResponse
from django.urls import path

from bot import callers, envelope, forms


def empty(request: HttpRequest) -> HttpResponse:
    """Check the key, and answer that nothing was found."""
    callers.meter(callers.caller_of(request, forms.organization(forms.query(request))))
    return envelope.respond(envelope.found([], "bench"), always_200=False)


urlpatterns = [path("bot/api.php", empty)]
