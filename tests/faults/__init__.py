"""Faults of the lab's fronts at every step of a transaction: rows, their causes, and what must hold at the end."""
