"""The header by which cells and the router know each other."""

import pytest

from rme.core import internal_calls
from rme.core.environment import cell_settings

SECRET, NOW = "s" * 32, 1_800_000_000.0
CALL = ("GET", "/cell/owner?digest=ab", b"body")
HEADER = internal_calls.sign(SECRET, *CALL, now=NOW)


@pytest.mark.parametrize("late", [-60, 0, 60])
def test_a_header_is_valid_for_its_call_for_a_minute(late):
    assert internal_calls.is_valid(HEADER, SECRET, *CALL, now=NOW + late)


@pytest.mark.parametrize(
    ("header", "secret", "call", "now"),
    [
        (HEADER, "t" * 32, CALL, NOW),
        (HEADER, "", CALL, NOW),
        (HEADER, SECRET, ("POST", *CALL[1:]), NOW),
        (HEADER, SECRET, ("GET", "/cell/owner?digest=ac", b"body"), NOW),
        (HEADER, SECRET, (*CALL[:2], b"other"), NOW),
        (HEADER, SECRET, CALL, NOW + 61),
        (HEADER, SECRET, CALL, NOW - 61),
        (HEADER.replace("v1=", "v2="), SECRET, CALL, NOW),
        ("", SECRET, CALL, NOW),
        ("t=²,v1=é", SECRET, CALL, NOW),
        (f"t={'9' * 5000},v1=", SECRET, CALL, NOW),
        (internal_calls.sign("", *CALL, now=NOW), "", CALL, NOW),
    ],
)
def test_any_other_header_is_not(header, secret, call, now):
    assert not internal_calls.is_valid(header, secret, *call, now=now)


def test_cells_are_read_with_their_addresses(tmp_path):
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    env = {
        "CELL": "eu",
        "CELLS": "eu=http://10.0.0.1:8000/, us=https://us.example",
        "CELL_SECRET_FILE": str(tmp_path / "secret"),
    }
    urls = {"eu": "http://10.0.0.1:8000", "us": "https://us.example"}
    assert cell_settings.read(env) == cell_settings.CellSettings("eu", urls, SECRET)
    assert cell_settings.read({}) == cell_settings.CellSettings("", {}, "")


@pytest.mark.parametrize(
    "env",
    [
        {"CELL": "EU"},
        {"CELL": "eu", "CELLS": "us=http://a", "CELL_SECRET": SECRET},
        {"CELLS": "us=http://a", "CELL_SECRET": "short"},
        {"CELLS": "us=ftp://a", "CELL_SECRET": SECRET},
        {"CELLS": "us=http://a,us=http://b", "CELL_SECRET": SECRET},
        {"CELL_SECRET_FILE": "/nowhere/secret"},
    ],
)
def test_wrong_settings_end_the_start(env):
    with pytest.raises(ValueError, match="CELL"):
        cell_settings.read(env)
