"""Days that pass in seconds: rows with past moments, and the periodic jobs at past moments."""
