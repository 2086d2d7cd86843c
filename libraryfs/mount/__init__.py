"""The pyfuse3 daemon. Entry points: `daemon.serve`, `daemon.umount`; pyfuse3 is imported when one of them runs."""
