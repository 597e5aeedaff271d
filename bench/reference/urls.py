"""Paths of the references."""

from django.urls import path

from bench.reference import lean, ordinary

urlpatterns = [
    path("ordinary/messages", ordinary.MessageView.as_view()),
    path("ordinary/messages/bulk", ordinary.BulkView.as_view()),
    path("lean/messages", lean.messages),
    path("lean/messages/bulk", lean.bulk),
    path("lean/way/messages/bulk", lean.bulk, {"status": "ACCEPTED"}),  # for lean_worker
]
