"""What host tools print, as state. One module a tool; each takes text and knows no host and no plan.

A parser raises `HostError` for text that is not its tool's. What the text does not show stays UNKNOWN.
"""
