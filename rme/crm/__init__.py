"""The platform where an organization's records live, behind one interface."""
