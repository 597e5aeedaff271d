from django.apps import AppConfig


class PushConfig(AppConfig):
    name = "push"
    verbose_name = "Push devices"

    def ready(self) -> None:
        """Raise ValueError for an invalid VAPID key: nothing could be pushed to browsers."""
        from push import vapid

        vapid.public_key()
