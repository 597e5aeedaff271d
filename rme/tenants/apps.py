from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TenantsConfig(AppConfig):
    name = "rme.tenants"
    label = "tenants"
    verbose_name = _("Organizations and access")
