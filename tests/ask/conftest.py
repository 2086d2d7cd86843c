from tests.store.conftest import build

__all__ = ["build"]
