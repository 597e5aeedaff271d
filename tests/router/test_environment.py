"""The router's settings, and its secrets from files."""

import pytest

from rme.core.environment.cell_settings import BadCells
from rme.core.environment.secret_files import BadSecretFile
from rme.router import environment

CELLS = "eu=http://10.0.0.1:8000"
SECRET = "s" * 32


def test_secrets_come_from_files_of_their_own_or_from_a_folder(tmp_path):
    (tmp_path / "CELL_SECRET").write_text(f"{SECRET}\n")
    (tmp_path / "METRICS_TOKEN").write_text("hidden\n")
    (tmp_path / "SECRET_KEY").write_text("is not read\n")
    each = {f"{name}_FILE": str(tmp_path / name) for name in ("CELL_SECRET", "METRICS_TOKEN")}
    for env in ({"SECRETS_DIR": str(tmp_path)}, each):
        found = environment.read({"CELLS": CELLS, **env})
        assert (found.cells.secret, found.metrics_token) == (SECRET, "hidden")
        assert SECRET not in repr(found) and "hidden" not in repr(found)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"CELLS": ""}, "CELLS must list"),
        ({"METRICS_TOKEN": "t", "METRICS_TOKEN_FILE": "/nowhere"}, "set twice"),
        ({"METRICS_TOKEN_FILE": "/nowhere"}, "METRICS_TOKEN_FILE cannot be read"),
        ({"CELL_SECRET": "", "SECRETS_DIR": "/nowhere"}, "no file CELL_SECRET"),
    ],
)
def test_settings_that_cannot_be_read_are_refused(env, message):
    with pytest.raises((BadCells, BadSecretFile), match=message):
        environment.read({"CELLS": CELLS, "CELL_SECRET": SECRET, **env})
