"""An archive in a folder."""

import pytest

from rme.core.environment.archive_settings import StoreSettings


@pytest.fixture
def archive(settings, tmp_path):
    """Switch the archive on; return its folder."""
    settings.ARCHIVE = StoreSettings((tmp_path / "archive").as_uri(), {})
    settings.ARCHIVE_SECONDS = 60.0  # however busy the machine
    return tmp_path / "archive"
