import pytest

from rme.cells import environment as cell_settings
from rme.cells.environment import BadCells, CellSettings
from rme.cells.router import environment

SECRET = "s" * 32
URLS = {"eu": "http://10.0.0.1:8000", "us": "https://us.internal"}
TEXT = "eu=http://10.0.0.1:8000, us=https://us.internal/"


def test_default_is_one_unnamed_cell():
    assert cell_settings.read({}) == CellSettings()


def test_settings_name_the_other_cells(tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n")
    found = cell_settings.read({"CELL": "eu", "CELLS": TEXT, "CELL_SECRET_FILE": str(path)})
    assert found == CellSettings("eu", URLS, SECRET)
    assert found.others == {"us": "https://us.internal"}
    assert SECRET not in repr(found)


def test_secret_file_with_two_lines_is_read_as_a_list(tmp_path):
    path = tmp_path / "secret"
    path.write_text(f"{SECRET}\n{'t' * 32}\n")
    env = {"CELL": "eu", "CELLS": TEXT}
    found = cell_settings.read({**env, "CELL_SECRET_FILE": str(path)})
    assert found.secret == f"{SECRET},{'t' * 32}"
    with pytest.raises(BadCells):
        cell_settings.read({**env, "CELL_SECRET": f"{SECRET},short"})


def test_the_router_reads_its_token_from_a_file(tmp_path):
    path = tmp_path / "METRICS_TOKEN"
    path.write_text("token\n")
    env = {"CELLS": TEXT, "CELL_SECRET": SECRET}
    assert environment.read({**env, "METRICS_TOKEN_FILE": str(path)}).metrics_token == "token"
    assert environment.read({**env, "METRICS_TOKEN": "token"}).metrics_token == "token"


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"CELL": "eu", "CELLS": TEXT}, "CELL_SECRET must have"),
        ({"CELLS": TEXT, "CELL_SECRET": "short"}, "CELL_SECRET must have"),
        ({"CELL": "ap", "CELLS": TEXT, "CELL_SECRET": SECRET}, "CELLS must list every cell"),
        ({"CELL": "eu", "CELL_SECRET": SECRET}, "CELLS must list every cell"),
        ({"CELLS": "eu", "CELL_SECRET": SECRET}, "CELLS is a list"),
        ({"CELLS": "Eu=http://a", "CELL_SECRET": SECRET}, "CELLS is a list"),
        ({"CELLS": "eu=http://a,eu=http://b", "CELL_SECRET": SECRET}, "CELLS is a list"),
        ({"CELLS": "eu=http://a/path", "CELL_SECRET": SECRET}, "the URL of eu"),
        ({"CELLS": "eu=ftp://a", "CELL_SECRET": SECRET}, "the URL of eu"),
        ({"CELLS": TEXT, "CELL_SECRET_FILE": "/nowhere"}, "CELL_SECRET_FILE cannot be read"),
    ],
)
def test_contradictory_settings_are_rejected(env, message):
    with pytest.raises(BadCells, match=message):
        cell_settings.read(env)
