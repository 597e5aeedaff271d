"""Paths of what emails tell of themselves, below /t/."""

from django.urls import path

from messaging.views import tracking

urlpatterns = [
    path("o/<str:token>", tracking.show_image),
    path("c/<str:token>", tracking.lead_on),
]
