"""Pre-send checks, the consent ledger, suppressions, erasure and data export.

Other packages use `gates` and `gate_lock` (checks before sending), `ledger` and `entries`
(consent), `suppressions`, `suppression_import` and `suppression_export`, `entry_inputs` and
`suppression_inputs` (what callers send), `keywords`, `opt_outs` and `soft_bounces` (results of
receipts and inbound SMS), `erasure`, `data_export`, `privacy` (requests for them),
`chain` (verifying and exporting the ledger) and `tasks`.
"""
