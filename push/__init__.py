"""Push: devices, the services that reach them, and what those say of dead ones."""
