"""The engine: a userspace NVMe over Fabrics host and what stands on it.

It imports `qos` and floor 0 only: it runs inside an inference server, where netmiko, Ansible and pydantic have no
business. `nvmeof` is the protocol, sans-I/O; transports, queues and the store come beside it.
"""
