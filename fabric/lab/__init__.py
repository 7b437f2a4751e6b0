"""A virtual fabric: switches that behave like their network OS over real SSH."""
