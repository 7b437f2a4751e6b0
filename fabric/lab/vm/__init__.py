"""Virtual machines of the lab: Debian's own kernel with Soft-RoCE and the NVMe-oF target, under QEMU.

`build_image` makes what they boot, once, and `prune_images` forgets it; `create` and `restore` make machines in a lab's
folder; `sweep` removes whatever a lab left there. Ports for data are unix stream sockets: this package knows no switch.
"""

from fabric.lab.vm.accelerator import pick_accelerator
from fabric.lab.vm.image import Image, build_image, cache_folder, find_image
from fabric.lab.vm.machine import Machine, create, open_machine, remove_machine, restore, sweep
from fabric.lab.vm.pruning import prune_images
from fabric.lab.vm.qemu import Accelerator
from fabric.lab.vm.recipe import Recipe
from fabric.lab.vm.spec import Disk, DiskKind, MachineSpec, Nic

__all__ = (
    "Accelerator",
    "Disk",
    "DiskKind",
    "Image",
    "Machine",
    "MachineSpec",
    "Nic",
    "Recipe",
    "build_image",
    "cache_folder",
    "create",
    "find_image",
    "open_machine",
    "pick_accelerator",
    "prune_images",
    "remove_machine",
    "restore",
    "sweep",
)
