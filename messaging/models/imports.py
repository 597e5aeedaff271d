"""Imports of suppressions: a file in parts, so that any worker can continue after another."""

from typing import Any, ClassVar

from django.db import models

from rme.tenants.imports import FileImport, FilePart


class SuppressionImport(FileImport):
    """One imported file. `unchanged` rows were already listed with a reason as strong."""

    class Meta:
        indexes: ClassVar[list[Any]] = [
            # read by rme.tenants.imports.import_next_part
            models.Index(
                fields=["turn_at"],
                condition=models.Q(state="RUNNING"),
                name="suppression_import_running",
            ),
        ]


class SuppressionImportPart(FilePart):
    """Some lines of an imported file."""

    run = models.ForeignKey(SuppressionImport, models.CASCADE, related_name="parts", db_index=False)

    class Meta:
        constraints: ClassVar[list[Any]] = [
            # read by rme.tenants.imports.import_part_of, in this order
            models.UniqueConstraint(fields=["run", "number"], name="suppression_import_part_once")
        ]
