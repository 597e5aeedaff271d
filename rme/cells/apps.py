from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _

from rme.celery import app


class CellsConfig(AppConfig):
    name = "rme.cells"
    verbose_name = _("Cells")

    def ready(self) -> None:
        """Let beat and workers end pauses, and let a log-out end the sessions in other cells."""
        from rme.cells.people import log_outs  # noqa: F401 - it needs the models

        app.conf.beat_schedule["settle-pauses"] = {
            "task": "tenants.settle_pauses",
            "schedule": 2.0,
        }
        app.autodiscover_tasks(["rme.cells"])
