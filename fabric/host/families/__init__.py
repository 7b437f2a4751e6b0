"""One driver a NIC family: what it can be told, in which order, and how it is read back."""
