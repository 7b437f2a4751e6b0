"""Checks on a GPU: not collected by pytest; `run.sh` runs them, and says so where there is none."""
