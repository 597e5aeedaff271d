"""Paths of the recipients' pages, below /p/. They are short because SMS contain them."""

from django.urls import path

from messaging.pages import preference_views

urlpatterns = [
    path("u/<str:token>", preference_views.unsubscribe),
    path("c/<str:token>", preference_views.confirm),
    path("<str:token>", preference_views.show_preferences),
]
