"""The messaging service: accept, gate, route, deliver, record."""
