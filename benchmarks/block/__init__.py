"""Files and disks: the engine's `block` beside fio and NIXL POSIX, in one run. `python -m benchmarks.block --help`."""
