"""What a running process costs, read from Linux: CPU time and memory."""

from __future__ import annotations

import platform
import re
import subprocess
import time
from pathlib import Path

_CPUCLOCK_SCHED = 2


def cpu_seconds(pid):
    """CPU time of every thread, living and gone, of process `pid`."""
    return time.clock_gettime((~pid << 3) | _CPUCLOCK_SCHED)


def memory_mb(pid):
    """Resident memory of process `pid` in MB (10^6 bytes)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024 / 1e6


def machine(python):
    """What the figures depend on, a dict of name to text; `python` is the interpreter that runs pykafkad."""
    cpu = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory_kb = int(re.search(r"^MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(), re.MULTILINE)[1])
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    told = subprocess.run(
        [python, "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True, check=True
    )
    cores = Path("/proc/cpuinfo").read_text().count("processor\t")
    return {
        "machine": f"{cores} x {cpu[1] if cpu else platform.machine()}, {memory_kb / 1e6:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "tcp": Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip(),
        "python": told.stdout.strip(),
        "java": java[0] if java else "none",
    }


def load_average():
    """The one-minute load average."""
    return float(Path("/proc/loadavg").read_text().split()[0])


def children(pid):
    """The processes that process `pid` has started and that still run."""
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def listens(pid, port):
    """Whether process `pid` listens at a TCP port of this machine."""
    inodes = set()
    for family in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    links = (link.readlink() for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink())
    return any(str(link) in inodes for link in links)
