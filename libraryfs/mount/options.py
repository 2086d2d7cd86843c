"""What a mount is started with."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class MountOptions:
    """One mount. `fuse_options` go to the kernel as they are, each as after `-o`: "noexec", "noatime"."""

    snapshot: Path
    mountpoint: Path
    principal: str
    foreground: bool = False
    allow_other: bool = False
    log_file: Path | None = None
    log_level: str = "warning"
    fuse_options: tuple[str, ...] = ()
