"""URLs of the bot API, below `BOT_BASE_PATH`."""

from django.urls import path

from bot import views

urlpatterns = [path("api.php", views.api), path("api_create.php", views.api_create)]
