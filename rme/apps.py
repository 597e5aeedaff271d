from django.apps import AppConfig

from rme.celery import app


class RmeConfig(AppConfig):
    name = "rme"

    def ready(self) -> None:
        """Use the service's Celery app in all threads, so that tasks know their broker."""
        app.set_default()
