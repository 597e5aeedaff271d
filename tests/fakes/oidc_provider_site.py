"""The paths, the person and the claims of `tests.fakes.oidc_provider`."""

import json
import sys

from django.contrib.auth import get_user_model
from django.urls import include, path
from oauth2_provider.oauth2_validators import OAuth2Validator

urlpatterns = [path("", include("oauth2_provider.urls", namespace="oauth2_provider"))]


class Validator(OAuth2Validator):
    """Adds the address of the person to the claims, and whether it is verified."""

    oidc_claim_scope = None

    def get_additional_claims(self, request):
        verified = {"email_verified": json.loads(sys.argv[4])} if sys.argv[4] else {}
        return {"email": sys.argv[3], "name": "Sam", **verified}


class LoggedIn:
    """Logs the one person in on each request."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        request.user = get_user_model().objects.get()
        return self.get_response(request)
