from libraryfs.paths import SECTIONS
from libraryfs.store import inodes


def test_no_two_namespaces_share_a_number() -> None:
    """5,000 namespaces and 4,095 clusters: many share one."""
    numbers: list[int] = []
    for name in range(5000):
        path = f"/ring/r{name}"
        numbers += [inodes.namespace_ino(path), inodes.row_ino(path, "memory", "m1")]
        numbers += [inodes.section_ino(path, section) for section in SECTIONS]
    assert len(set(numbers)) == len(numbers)
    assert all(0 < number < 1 << inodes.ENTRY_BITS for number in numbers)


def test_sections_are_numbered_in_listing_order() -> None:
    numbers = [inodes.section_ino("/ring/dev", section) for section in SECTIONS]
    assert numbers == sorted(numbers)
