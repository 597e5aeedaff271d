"""The contract's rules for the whole API: what no single module keeps."""
