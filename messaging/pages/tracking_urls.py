"""Paths of open and click tracking, below /t/."""

from django.urls import path

from messaging.pages import tracking_views

urlpatterns = [
    path("o/<str:token>", tracking_views.show_image),
    path("c/<str:token>", tracking_views.redirect),
]
