"""`python -m rme.key_files create|add|promote|forget FOLDER …`: makes and rotates the keys of a
deployment, as files of a folder that SECRETS_DIR names, or a Secret of Kubernetes is made of.

A key is rotated in three steps, and after each all processes are restarted: `add` makes a key that
all know and none uses, `promote` has them use it, `forget` drops the old ones.
"""

import argparse
import base64
import os
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from rme.core.environment.secret_key import derived_key

MODE = 0o440


def random_text() -> str:
    return secrets.token_urlsafe(48)


def random_key() -> str:
    """Return 32 bytes in base64url: a Fernet key, or a key of Web Push."""
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


NEW: dict[str, Callable[[], str]] = {
    "SECRET_KEY": random_text,
    "FIELD_KEYS": random_key,
    "VAPID_PRIVATE_KEY": random_key,
    "METRICS_TOKEN": random_text,
    "CELL_SECRET": random_text,
}
"""How each key is made."""
OF_CELLS = ("CELL_SECRET",)
"""What is made for cells alone, once for all of them."""
DERIVED = {"FIELD_KEYS": "fields", "VAPID_PRIVATE_KEY": "vapid"}
"""What the service derives from SECRET_KEY where there is no such key, and for what purpose."""
SINGLE = ("SECRET_KEY", "POSTGRES_PASSWORD", "REDIS_PASSWORD")
"""What is no list: a comma in it is a character."""
ROTATED = ("SECRET_KEY", "FIELD_KEYS", "CELL_SECRET")
FALLBACKS = "SECRET_KEY_FALLBACKS"


class Keys:
    """The files of a folder. Each is replaced as a whole, so a reader never sees half of one."""

    def __init__(self, folder: Path, owner: int | None = None) -> None:
        self.folder, self.owner = folder, owner

    def create(self, hosts: tuple[str, str] | None = None, *, cells: bool = False) -> list[str]:
        """Make all keys that are missing (the one of cells too, if there are any), and the URLs of
        PostgreSQL and Redis on new hosts; return the names of what was made.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.owner is not None:
            os.chown(self.folder, self.owner, self.owner)
        current_keys = self._lines("SECRET_KEY")
        names = [name for name in NEW if cells or name not in OF_CELLS]
        created = [name for name in names if not (self.folder / name).exists()]
        for name in created:
            if current_keys and name in DERIVED:
                # What the service derived until now: with another one stored secrets are lost.
                self._write(name, [derived_key(current_keys[0], DERIVED[name])])
            else:
                self._write(name, [NEW[name]()])
        if hosts:
            created += self._addresses(*hosts)
        return created

    def _addresses(self, database: str, redis: str) -> list[str]:
        """Create the servers' passwords and URLs; keep existing ones.

        A Redis URL without a password, from an earlier release, gets the password.
        """
        passwords = {
            name: (self._lines(name) or [secrets.token_hex(24)])[0]
            for name in ("POSTGRES_PASSWORD", "REDIS_PASSWORD")
        }
        quoted = {name: quote(password, safe="") for name, password in passwords.items()}
        values = {
            "POSTGRES_PASSWORD": passwords["POSTGRES_PASSWORD"],
            "DATABASE_URL": f"postgres://rme:{quoted['POSTGRES_PASSWORD']}@{database}/rme",
            "REDIS_PASSWORD": passwords["REDIS_PASSWORD"],
            "REDIS_URL": f"redis://:{quoted['REDIS_PASSWORD']}@{redis}/0",
        }
        is_open = self._lines("REDIS_URL") == [f"redis://{redis}/0"]
        created = [
            name
            for name in values
            if not (self.folder / name).exists() or (name == "REDIS_URL" and is_open)
        ]
        for name in created:
            self._write(name, [values[name]])
        return created

    def read(self, name: str) -> list[str]:
        """Return the values of a key: the one in use first."""
        keys = self._lines(name)
        return [*keys, *self._lines(FALLBACKS)] if name == "SECRET_KEY" else keys

    def add(self, name: str) -> None:
        self._store(name, [*self.read(name), NEW[name]()])

    def promote(self, name: str) -> None:
        """Put the key that was added last first. Raises ValueError if that cannot be."""
        *fallbacks, last = self.read(name)
        if not fallbacks:
            raise ValueError(f"{name} has one key alone: `add` makes another one.")
        if any("," in key for key in fallbacks):
            raise ValueError(f"{name} has a comma, and {FALLBACKS} is a list between commas.")
        self._store(name, [last, *fallbacks])

    def forget(self, name: str) -> None:
        self._store(name, self.read(name)[:1])

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        if not path.exists():
            return []
        text = path.read_text()
        lines = (text if name in SINGLE else text.replace(",", "\n")).splitlines()
        return [line.strip() for line in lines if line.strip()]

    def _store(self, name: str, values: Sequence[str]) -> None:
        if name != "SECRET_KEY":
            self._write(name, values)
            return
        first, *fallbacks = values
        if fallbacks:
            # Before the key itself, so that at no time one of the keys is missing.
            self._write(FALLBACKS, fallbacks)
        self._write(name, [first])
        if not fallbacks:
            (self.folder / FALLBACKS).unlink(missing_ok=True)

    def _write(self, name: str, values: Sequence[str]) -> None:
        new = self.folder / f".{name}.{os.getpid()}"
        with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, MODE), "w") as file:
            file.write("".join(f"{value}\n" for value in values))
        if self.owner is not None:
            os.chown(new, self.owner, self.owner)
        new.rename(self.folder / name)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rme.key_files", description=__doc__)
    parser.add_argument("--owner", type=int, help="the number of the user and group of the files")
    steps = parser.add_subparsers(dest="step", required=True)
    create = steps.add_parser("create", help="make the keys that are missing")
    create.add_argument("folder", type=Path)
    create.add_argument(
        "--hosts",
        nargs=2,
        metavar=("POSTGRESQL", "REDIS"),
        help="make a password too, and the URLs of both, which are host:port",
    )
    create.add_argument(
        "--cells", action="store_true", help="make CELL_SECRET too, which all cells share"
    )
    for step in ("add", "promote", "forget"):
        parser_of_step = steps.add_parser(step)
        parser_of_step.add_argument("folder", type=Path)
        parser_of_step.add_argument("name", choices=ROTATED)
    options = parser.parse_args()
    keys = Keys(options.folder, options.owner)
    if options.step == "create":
        created = keys.create(options.hosts, cells=options.cells)
        print("Made", ", ".join(created) or "nothing: all are there")
        return 0
    if not keys.read(options.name):
        parser.error(f"there is no file {options.folder / options.name}; `create` makes it")
    try:
        {"add": keys.add, "promote": keys.promote, "forget": keys.forget}[options.step](
            options.name
        )
    except ValueError as error:
        parser.error(str(error))
    print(f"{options.name}: {len(keys.read(options.name))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
