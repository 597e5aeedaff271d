"""Paths of the pages for recipients, below /p/. Short, because they stand in text messages."""

from django.urls import path

from messaging.views import preferences

urlpatterns = [
    path("u/<str:token>", preferences.unsubscribe),
    path("c/<str:token>", preferences.confirm),
    path("<str:token>", preferences.show_preferences),
]
