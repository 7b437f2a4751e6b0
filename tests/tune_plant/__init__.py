"""A plant for the tuner: closed-loop readers on shaped targets whose packets cross the lab's real data plane."""
