from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from push import vapid


class PushConfig(AppConfig):
    name = "push"
    verbose_name = _("Push devices")

    def ready(self) -> None:
        """Raise ValueError for an invalid VAPID key: nothing could be pushed to browsers."""
        vapid.public_key()
