"""Files of records of the built-in CRM."""
