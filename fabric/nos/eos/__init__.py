"""Arista EOS: CLI text, configuration sessions with a commit timer."""
