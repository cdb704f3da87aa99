# SPDX-License-Identifier: Apache-2.0
"""Frames of the toy's language, with their variables."""

from collections.abc import Sequence
from dataclasses import dataclass

from memory import Layouts, Structure, text
from unwindd_plugin import ManagedFrame, ManagedVariable, RuntimeEngine
from unwindd_plugin import runtime_pb2 as rpb

DEEPEST = 16  # levels of lists
LONGEST = 1 << 12  # lists that are read at one level
ITEMS = 1 << 14  # items of lists in the variables of one stack: a list may have itself


@dataclass(slots=True)
class Limits:
    """How much of values is wanted."""

    depth: int
    elements: int


@dataclass(slots=True)
class Activation:
    """The frames of one activation of toy_run, innermost first."""

    entry: int  # an address in its native frame
    frames: list[Structure]


def activations(chain: Sequence[Structure]) -> list[Activation]:
    """Divides the frames of a thread. Those behind the last entry belong to no activation."""
    divided, frames = [], []
    for frame in chain:
        frames.append(frame)
        if entry := frame.number("entry"):
            divided.append(Activation(entry, frames))
            frames = []
    return divided


class FrameReader:
    """Makes frames of what is in memory."""

    def __init__(self, layouts: Layouts, engine: RuntimeEngine, file: str, kinds: dict[int, str], limits: Limits | None) -> None:
        self._layouts = layouts
        self._engine = engine
        self._file = file
        self._kinds = kinds
        self._limits = limits
        self._functions: dict[int, Structure] = {}
        self._texts: dict[int, Structure] = {}
        self._lists: dict[int, Structure] = {}
        self._left = ITEMS

    def load(self, frames: Sequence[Structure]) -> None:
        """Reads what frames lead to: a request for the functions, and one for the texts and one for the lists of each level."""
        self._functions = self._layouts.read(self._engine, "toy_function", (f.number("function") for f in frames))
        if self._limits is None:
            return
        values = [v for f in frames for v in self._locals(f)]
        for _ in range(min(self._limits.depth, DEEPEST) + 1):
            texts, lists = self._at(values, "text") - self._texts.keys(), self._at(values, "list") - self._lists.keys()
            self._texts.update(self._layouts.read(self._engine, "toy_text", texts))
            found = self._layouts.read(self._engine, "toy_list", sorted(lists)[:LONGEST])
            self._lists.update(found)
            values = [v for each in found.values() for v in self._items(each)]
            if not values:
                break

    def _at(self, values: Sequence[Structure], kind: str) -> set[int]:
        return {self._address(v) for v in values if self._kind(v) == kind}

    def _kind(self, value: Structure) -> str:
        return self._kinds.get(value.number("kind"), "")

    def _address(self, value: Structure) -> int:
        return value.number("as")

    def _locals(self, frame: Structure) -> list[Structure]:
        f = self._functions.get(frame.number("function"))
        return self._layouts.array("toy_value", frame.bytes("locals"), f.number("locals")) if f else []

    def _items(self, each: Structure) -> list[Structure]:
        return self._layouts.array("toy_value", each.bytes("items"), each.number("count"))

    def frames(self, frames: Sequence[Structure]) -> list[ManagedFrame]:
        """The frames of a stack, or of a part of one, which were loaded."""
        return [self._frame(f) for f in frames]

    def begin(self) -> None:
        """Begins another stack."""
        self._left = ITEMS

    def _frame(self, frame: Structure) -> ManagedFrame:
        f = self._functions.get(frame.number("function"))
        if f is None:
            return ManagedFrame(kind=rpb.MANAGED_INTERPRETED)
        body = self._layouts.array("toy_statement", f.bytes("body"), f.number("statements"))
        statement = frame.number("statement")
        line = body[statement].number("line") if statement < len(body) else 0
        line = line if line < 1 << 31 else 0
        return ManagedFrame(f.text("name"), self._file, line, kind=rpb.MANAGED_INTERPRETED, variables=self._variables(f, frame))

    def _variables(self, f: Structure, frame: Structure) -> list[ManagedVariable]:
        if self._limits is None:
            return []
        values, names = self._locals(frame), f.bytes("names")
        width = max(len(f.bytes("name")), 1)
        variables = []
        for i, value in enumerate(values):
            v = self._variable(text(names[i * width : (i + 1) * width]), value, min(self._limits.depth, DEEPEST))
            v.is_param = i < f.number("parameters")
            variables.append(v)
        return variables

    def _variable(self, name: str, value: Structure, depth: int) -> ManagedVariable:
        kind, address = self._kind(value), self._address(value)
        match kind:
            case "number":
                return ManagedVariable(name, kind, str(value.number("as", signed=True)))
            case "text" if address in self._texts:
                shown = self._texts[address].text("bytes")
                most = self._limits.elements if self._limits else 0
                return ManagedVariable(name, kind, f'"{shown[:most]}"', more=max(len(shown) - most, 0))
            case "list" if address in self._lists:
                return self._list(name, self._lists[address], depth)
            case "unset":
                return ManagedVariable(name, status=rpb.VALUE_UNSET)
        reason = f"{address:#x} is not in memory" if kind else f"a value of kind {value.number('kind')}"
        return ManagedVariable(name, kind, reason, rpb.VALUE_UNREADABLE)

    def _list(self, name: str, each: Structure, depth: int) -> ManagedVariable:
        items = self._items(each)
        most = min(self._limits.elements, self._left) if self._limits and depth > 0 else 0
        self._left -= min(most, len(items))
        children = [self._variable(f"[{i}]", item, depth - 1) for i, item in enumerate(items[:most])]
        return ManagedVariable(name, "list", f"{len(items)} items", children=children, more=len(items) - len(children))
