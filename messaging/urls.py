"""Paths of the messaging service, below /rme/v1/."""

from django.urls import path

from messaging import views

urlpatterns = [
    path("messages", views.MessagesView.as_view()),
    path("messages/bulk", views.BulkView.as_view()),
    path("messages/<str:message_id>", views.MessageView.as_view()),
]
