"""The channels that columns of several tables take."""

from django.utils.translation import gettext_lazy as _

from messaging.domain.channels import ALL, Channel

CHANNEL_CHOICES = [(channel.value, channel.value) for channel in Channel]
ANY_CHANNEL_CHOICES = [*CHANNEL_CHOICES, (ALL, _("All channels"))]
