# SPDX-License-Identifier: Apache-2.0
"""Structures of the interpreter in the memory of a target, read many at once by the layouts of the debug information."""

from collections.abc import Iterable, Sequence

from unwindd_plugin import OpenRuntimeRequest, Refusal, RuntimeEngine, TypeLayout
from unwindd_plugin import arch_pb2 as pb

TYPES = {
    "toy_runtime": ["file", "threads", "tasks", "builtins", "builtin_count", "thunks", "thunk_size"],
    "toy_thread": ["next", "id", "top", "task"],
    "toy_task": ["next", "number", "parent", "waits_for", "state", "carrier", "function", "top"],
    "toy_frame": ["caller", "function", "statement", "entry", "locals"],
    "toy_function": ["name", "names", "parameters", "locals", "statements", "body"],
    "toy_statement": ["line"],
    "toy_builtin": ["name"],
    "toy_value": ["kind", "as"],
    "toy_text": ["bytes"],
    "toy_list": ["count", "items"],
}
"""The structures and their members that are read."""

LARGEST = 1 << 16  # bytes of a structure
MOST = 1 << 14  # structures in a list that leads from one to the next


class Structure:
    """The bytes of a structure."""

    def __init__(self, layout: TypeLayout, data: bytes, order: "pb.ByteOrder") -> None:
        self.data = data
        self._layout = layout
        self._order = order

    def bytes(self, member: str) -> bytes:
        place = self._layout.members[member]
        return self.data[place.offset : place.offset + place.size]

    def number(self, member: str, signed: bool = False) -> int:
        big = self._order == pb.ORDER_BIG_ENDIAN
        return int.from_bytes(self.bytes(member), "big" if big else "little", signed=signed)

    def text(self, member: str) -> str:
        return text(self.bytes(member))


def text(data: bytes) -> str:
    """The text before the first zero."""
    return data.partition(b"\0")[0].decode("utf-8", "replace")


class Layouts:
    """The layouts of the structures in one interpreter."""

    def __init__(self, request: OpenRuntimeRequest) -> None:
        self._types = request.types
        self._order = request.byte_order
        for name, members in TYPES.items():
            layout = request.types.get(name)
            if layout is None or not set(members) <= set(layout.members):
                problem = layout.problem if layout else ""
                raise Refusal(f"the layout of struct {name} is not known: {problem or 'the interpreter has no debug information'}")
            if any(m.offset + m.size > layout.size for m in layout.members.values()) or not 0 < layout.size <= LARGEST:
                raise Refusal(f"struct {name} has {layout.size} bytes, expected {LARGEST} at most, and all members among them")

    def size(self, name: str) -> int:
        return self._types[name].size

    def member(self, name: str, path: str) -> int:
        """The offset of a member."""
        return self._types[name].members[path].offset

    def parse(self, name: str, data: bytes) -> Structure:
        return Structure(self._types[name], data, self._order)

    def array(self, name: str, data: bytes, count: int) -> list[Structure]:
        """The first count elements of an array of structures; fewer, where it has fewer."""
        size = self.size(name)
        return [self.parse(name, data[at : at + size]) for at in range(0, min(count, len(data) // size) * size, size)]

    def read(self, engine: RuntimeEngine, name: str, addresses: Iterable[int]) -> dict[int, Structure]:
        """The structures at addresses, by these, in one request; without those that are not there."""
        wanted = sorted(set(addresses) - {0})
        parts = zip(wanted, engine.read_many(wanted, self.size(name)))
        return {address: self.parse(name, data) for address, data in parts if data is not None}

    def chains(
        self, engine: RuntimeEngine, name: str, link: str, firsts: Sequence[int]
    ) -> tuple[list[list[tuple[int, Structure]]], list[int]]:
        """The lists that begin at addresses, read side by side, and the addresses where they break off; 0 where one ends."""
        lists: list[list[tuple[int, Structure]]] = [[] for _ in firsts]
        ends, seen = list(firsts), [set[int]() for _ in firsts]
        under_way = [i for i, address in enumerate(ends) if address]
        while under_way:
            found = self.read(engine, name, (ends[i] for i in under_way))
            going = []
            for i in under_way:
                at = found.get(ends[i])
                if at is None or ends[i] in seen[i]:
                    continue  # not there, or a circle
                seen[i].add(ends[i])
                lists[i].append((ends[i], at))
                ends[i] = at.number(link)
                if ends[i] and len(lists[i]) < MOST:
                    going.append(i)
            under_way = going
        return lists, ends
