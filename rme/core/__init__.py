"""What every app stands on. It knows no app and has no models."""
