"""Gates, the consent ledger, suppressions, erasure and data export."""
