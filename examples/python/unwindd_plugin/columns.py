# SPDX-License-Identifier: Apache-2.0
"""Columns: how lists go over the protocol. A bytes member is taken out of its message once:
each time it is named, Python's protobuf copies all of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from . import arch_pb2 as pb
from .errors import Refusal

T = TypeVar("T")
U = TypeVar("U")

Registers = Mapping[int, bytes]
"""Registers of a thread by their DWARF numbers, each in the byte order of the architecture."""


def blobs(items: Iterable[bytes]) -> pb.Blobs:
    """A column of byte strings."""
    items = list(items)
    return pb.Blobs(lengths=[len(i) for i in items], data=b"".join(items))


def texts(items: Iterable[str]) -> pb.Blobs:
    """A column of texts. Bytes that were no UTF-8 come out as they went in."""
    return blobs(i.encode("utf-8", "surrogateescape") for i in items)


def split(column: pb.Blobs, count: int | None = None) -> list[bytes]:
    """The byte strings of a column, which has count of them."""
    return _cut("Blobs", column.lengths, column.data, count)


def split_texts(column: pb.Blobs, count: int | None = None) -> list[str]:
    """The texts of a column."""
    return [i.decode("utf-8", "surrogateescape") for i in split(column, count)]


def _cut(what: str, lengths: Iterable[int], data: bytes, count: int | None) -> list[bytes]:
    at, items = 0, []
    for length in lengths:
        items.append(data[at : at + length])
        at += length
    if at != len(data) or count is not None and len(items) != count:
        raise Refusal(f"{what}: {len(items)} items of {at} bytes in {len(data)}, expected {count} and all of them")
    return items


def pack_registers(states: Iterable[Registers]) -> pb.RegistersColumn:
    """A column of register states."""
    ordered = [sorted(s.items()) for s in states]
    values = [value for state in ordered for _, value in state]
    return pb.RegistersColumn(
        counts=[len(s) for s in ordered],
        numbers=[number for state in ordered for number, _ in state],
        lengths=[len(v) for v in values],
        data=b"".join(values),
    )


def split_registers(column: pb.RegistersColumn, count: int | None = None) -> list[dict[int, bytes]]:
    """The register states of a column, which has count of them."""
    counts, numbers = list(column.counts), list(column.numbers)
    values = _cut("RegistersColumn", column.lengths, column.data, len(numbers))
    check("RegistersColumn.counts", counts, count)
    return [dict(pairs) for pairs in lists("RegistersColumn.counts", counts, list(zip(numbers, values)))]


def check(what: str, column: Sequence[object], count: int | None) -> None:
    """Refuses a column that has not count entries."""
    if count is not None and len(column) != count:
        raise Refusal(f"{what}: {len(column)} entries, expected {count}")


def lists(what: str, counts: Iterable[int], items: Sequence[T]) -> Iterator[Sequence[T]]:
    """The lists, by their counts, whose elements are one after the other in items."""
    counts = list(counts)
    if sum(counts) != len(items):
        raise Refusal(f"{what}: {sum(counts)} in all, expected {len(items)}")
    at = 0
    for count in counts:
        yield items[at : at + count]
        at += count


def flat(items: Iterable[T], get: Callable[[T], Iterable[U]]) -> list[U]:
    """The lists that items have, one after the other."""
    return list(chain.from_iterable(map(get, items)))
