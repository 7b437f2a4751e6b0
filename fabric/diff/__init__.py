"""Running and intended to an ordered change set and its rollback. Pure."""
