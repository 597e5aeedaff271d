"""An empty view behind the bot's key check: what there is before anything is looked up."""

from django.http import HttpResponse
from django.urls import path
from rest_framework.request import Request

from bot import callers, envelope
from bot.views import KeyAuthentication
from rme.core.http.api import JsonView


class Empty(JsonView):
    """Check the key, and answer that nothing was found."""

    authentication_classes = (KeyAuthentication,)
    permission_classes = ()
    throttle_classes = ()  # the meter is asked below

    def get(self, request: Request) -> HttpResponse:
        callers.check_limits(request.auth)
        return envelope.respond(envelope.found_body([], "bench"), always_200=False)


urlpatterns = [path("bot/api.php", Empty.as_view())]
