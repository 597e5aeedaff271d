from django.apps import AppConfig

from push import vapid


class PushConfig(AppConfig):
    name = "push"
    verbose_name = "Push devices"

    def ready(self) -> None:
        """Raise ValueError for an invalid VAPID key: nothing could be pushed to browsers."""
        vapid.public_key()
