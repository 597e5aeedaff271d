from django.apps import AppConfig


class RmeConfig(AppConfig):
    name = "rme"

    def ready(self) -> None:
        """Set the Celery app up in every process, so that tasks know their broker."""
        from rme import celery  # noqa: F401
