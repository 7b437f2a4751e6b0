"""Intent to numbers per device: maps, headroom, curves, host plans. Pure."""
