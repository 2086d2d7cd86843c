"""What a mount is started with."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class MountOptions(BaseModel):
    """One mount. `fuse_options` go to the kernel as they are, each as after `-o`: "noexec", "max_threads=1"."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    snapshot: Path
    mountpoint: Path
    principal: str
    foreground: bool = False
    allow_other: bool = False
    log_file: Path | None = None
    log_level: str = "warning"
    fuse_options: tuple[str, ...] = ()
