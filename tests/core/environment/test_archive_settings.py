"""What the environment must say for the archive."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from rme.core.environment import archive_settings, secret_files

ENV = {
    "ARCHIVE_URL": "s3://old-messages/rme/2026",
    "ARCHIVE_S3_KEY_ID": "key",
    "ARCHIVE_S3_SECRET": "a-secret",
}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"ARCHIVE_URL": "ftp://x/y"}, "must be file:///folder or s3://bucket/prefix"),
        ({"ARCHIVE_URL": "s3://key:secret@bucket"}, "without credentials"),
        ({"ARCHIVE_URL": "s3:///prefix"}, "name the bucket"),
        ({"ARCHIVE_URL": "file://archive"}, "a folder is written as"),
    ],
)
def test_invalid_settings_are_rejected_at_start(changes, text):
    with pytest.raises(ImproperlyConfigured, match=text) as raised:
        archive_settings.read({**ENV, **changes})
    assert "secret@" not in str(raised.value)


@pytest.mark.parametrize("days", ["30", "400"])
def test_archive_days_are_bounded(days):
    with pytest.raises(ImproperlyConfigured, match="at least 31 and less than"):
        archive_settings.read_days({**ENV, "ARCHIVE_AFTER_DAYS": days}, 400)
    assert archive_settings.read_days({"ARCHIVE_AFTER_DAYS": days}, 400) == int(days)


def test_without_the_libraries_it_is_refused_at_the_start(monkeypatch):
    monkeypatch.setattr(archive_settings, "find_spec", lambda name: None)
    with pytest.raises(ImproperlyConfigured, match="pyarrow and obstore not installed: install"):
        archive_settings.read(ENV)
    assert archive_settings.read({}) is None


def test_a_secret_is_read_from_a_file(tmp_path):
    (tmp_path / "secret").write_text("from a file\n")
    env = {name: value for name, value in ENV.items() if name != "ARCHIVE_S3_SECRET"}
    env = secret_files.read({**env, "ARCHIVE_S3_SECRET_FILE": str(tmp_path / "secret")})
    assert archive_settings.read(env).options["secret_access_key"] == "from a file"
