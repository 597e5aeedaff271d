"""A model field of the records' own: a text beside its folded form."""

from typing import Any

from django.db import models

from rme.crm import folding


class FoldedNameField(models.CharField):  # type: ignore[type-arg]  # in stubs only
    """Keep `rme.crm.folding.account_name` of another field, written whenever the row is."""

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
        """Fold what the other field holds now."""
        folded = folding.account_name(getattr(model_instance, self.source))
        setattr(model_instance, self.attname, folded)
        return folded
