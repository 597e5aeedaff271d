"""A model field for the folded form of another field."""

from typing import Any

from django.db import models

from rme.crm import folding


class FoldedNameField(models.CharField):  # type: ignore[type-arg]  # in stubs only
    """Stores `rme.crm.folding.account_name` of the field `source` whenever the row is saved."""

    def __init__(self, *args: Any, source: str = "name", **kwargs: Any) -> None:
        self.source = source
        kwargs |= {"max_length": folding.LENGTH, "editable": False, "db_default": ""}
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        for fixed in ("max_length", "editable", "db_default"):
            kwargs.pop(fixed, None)
        return name, path, args, {**kwargs, "source": self.source}

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        """Return the folded value of the other field."""
        folded = folding.account_name(getattr(model_instance, self.source))
        setattr(model_instance, self.attname, folded)
        return folded
