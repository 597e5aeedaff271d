"""Salesforce as a platform. Other packages import from `connector` only."""
