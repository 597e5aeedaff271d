from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "rme.tenants"
    label = "tenants"
    verbose_name = "Organizations and access"
