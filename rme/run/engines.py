"""placeholder until the engines are in"""
from pathlib import Path


def engine_env(var: Path) -> dict[str, str]:
    return {"DATABASE_URL": "postgres://rme@%2Ftmp%2Fpgx/postgres", "REDIS_URL": "redis://127.0.0.1:6399/0"}
