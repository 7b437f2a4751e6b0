"""NVMe over Fabrics without I/O, for both roles: bytes, completions and `now` go in; commands and events come out.

| package | holds |
|---|---|
| wire | bytes to values and back, for both roles |
| host | a controller as its host sees it: `Controller` |
| target | subsystems served to hosts, with the checks of nvmet or of SPDK: `Target` |
| tcp | the PDUs of NVMe/TCP and their stream |
| errors | what can go wrong, by who must act |

It imports no socket, clock, thread or random source. Host and target do not see each other; tests wire them together.
"""
