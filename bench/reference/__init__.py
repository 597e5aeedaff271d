"""What rme is measured against: an ordinary Django stack, and a lean one without gates."""
