"""Facts that gates decide by, all of which `facts` reads at once: `active_suppressions`,
`current_consent`, `address_opt_outs` and `pauses_and_caps`. The decisions are in
`messaging.domain.gates`. `suppression_list` adds entries.
"""
