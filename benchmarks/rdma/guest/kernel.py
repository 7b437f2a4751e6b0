"""Reads through the kernel's host with fio, in a guest: one JSON object in, one out.

python3 kernel.py '{"device": "/dev/nvme0n1", "size": 65536, "readers": 16, "seconds": 4}'

fio says how fast; the CPU of the guest is sampled in the middle of its run, with the bytes of the disk in that time.
"""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

RAMP_S = 1.0


def sample(device: str) -> tuple[float, int]:
    """Returns seconds that the guest's CPUs were busy, and bytes read from the disk, both since it booted."""
    line = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
    user, nice, system, _idle, _wait, irq, softirq, *_ = map(int, line.split()[1:])
    # Linux 6.1 counts on a namespace's path, not on its head
    path = re.sub(r"nvme(\d+)n", r"nvme\1c\1n", Path(device).name)
    sectors = int(Path(f"/sys/block/{path}/stat").read_text(encoding="ascii").split()[2])
    return (user + nice + system + irq + softirq) / 100, sectors * 512


def main() -> None:
    """Measures once."""
    asked = json.loads(sys.argv[1])
    seconds = asked["seconds"]
    argv = [
        "fio", "--output-format=json", "--ioengine=io_uring", "--direct=1", "--rw=randread", f"--bs={asked['size']}",
        f"--iodepth={asked['readers']}", "--numjobs=1", f"--runtime={seconds}", f"--ramp_time={RAMP_S}",
        "--time_based", "--norandommap", "--randrepeat=1", "--name=read", f"--filename={asked['device']}",
    ]  # fmt: skip
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    _, began = sample(asked["device"])
    while sample(asked["device"])[1] == began and process.poll() is None:
        time.sleep(0.05)  # fio itself takes a while to start
    time.sleep(RAMP_S)
    busy, read = sample(asked["device"])
    time.sleep(max(0.5, seconds - 0.5))
    later_busy, later_read = sample(asked["device"])
    text = process.communicate()[0]
    job = json.loads(text[text.index("{") :])["jobs"][0]
    row, gib = job["read"], (later_read - read) / 2**30
    tail = row["clat_ns"].get("percentile", {})
    print(
        json.dumps(
            {
                "mib_s": round(row["bw_bytes"] / 2**20, 3),
                "reads": row["total_ios"],
                "errors": job["error"],
                "guest_cpu_s_per_gib": round((later_busy - busy) / gib, 3) if gib else None,
                "p50_ms": round(tail.get("50.000000", 0) / 1e6, 3),
                "p99_ms": round(tail.get("99.000000", 0) / 1e6, 3),
            }
        )
    )


if __name__ == "__main__":
    main()
