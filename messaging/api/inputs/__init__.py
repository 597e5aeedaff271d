"""What the calls take, as pydantic models; `parsing.parse` reads a body with one."""
