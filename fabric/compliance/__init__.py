"""Rules over plan and observed state; each answers PASS, FAIL or UNKNOWN."""
