"""Change sets onto devices, transactionally: stage, commit under a timer, verify, confirm or revert."""
