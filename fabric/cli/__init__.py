"""argv in, exit codes and text out. No logic."""
