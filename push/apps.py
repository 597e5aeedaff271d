from django.apps import AppConfig


class PushConfig(AppConfig):
    name = "push"
    verbose_name = "Push devices"

    def ready(self) -> None:
        """Refuse to start with a VAPID key that is none: nothing could be pushed to browsers."""
        from push import vapid

        vapid.public_key()
