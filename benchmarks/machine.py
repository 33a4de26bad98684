"""What a measurement was taken on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path


def machine() -> dict[str, object]:
    """Processor, cores and memory of this machine."""
    cpu = platform.processor() or platform.machine()
    flags: set[str] = set()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                cpu = value.strip()
            if name.strip() == "flags":
                flags = set(value.split())
    wanted = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "extensions": [name for name in wanted if name in flags],
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def commit(here: Path | None = None) -> str:
    """The commit measured, of this checkout or another, with a + where files differ from it."""
    here = here or Path(__file__).parent.parent
    try:
        name = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=here, capture_output=True, text=True, check=True
        ).stdout.strip()
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", "src"], cwd=here, capture_output=True, text=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + ("+" if changed else "")
