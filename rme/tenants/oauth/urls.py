"""Paths of the authorization server."""

from django.urls import path

from rme.tenants.oauth import views

urlpatterns = [
    path("services/oauth2/token", views.token),
    path("services/oauth2/revoke", views.revoke),
    path("services/oauth2/introspect", views.introspect),
    path(".well-known/oauth-authorization-server", views.metadata),
]
