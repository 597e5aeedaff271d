"""The hourly job that deletes what has expired, of every package below. `tasks` has it."""
