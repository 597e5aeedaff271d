from django.apps import AppConfig


class CrmConfig(AppConfig):
    name = "rme.crm"
    label = "crm"
    verbose_name = "Platform records"
