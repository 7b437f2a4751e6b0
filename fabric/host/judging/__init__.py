"""Rules about one host or target, by theme. Pure; each answers PASS, FAIL or UNKNOWN for each place it is given."""
