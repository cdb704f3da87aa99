# SPDX-License-Identifier: Apache-2.0
"""Rows: where the registers of a caller are, for a range of PCs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from . import arch_pb2 as pb
from .columns import blobs, check, flat, lists, split

NO_REGISTER = 0xFFFFFFFF
"""The register number that stands for none."""


def registers(
    first: int, names: Sequence[str] | str, bits: int, *, count: int = 1, kind: "pb.RegisterClass" = pb.CLASS_GENERAL, lanes: int = 0
) -> pb.RegisterRange:
    """Registers with consecutive DWARF numbers: by a list of names, or count of them by one with "%d"."""
    listed = [names] if isinstance(names, str) else names
    if not isinstance(names, str):
        count = len(listed)
    r = pb.RegisterRange(first=first, count=count, names=listed, bits=bits, lanes=lanes)
    setattr(r, "class", kind)  # a word of Python's own
    return r


@dataclass(slots=True)
class Rule:
    """Where the caller's value of a register is. Expressions are in the canonical dialect."""

    column: int  # the register
    kind: "pb.RuleKind" = pb.RULE_UNDEFINED
    offset: int = 0  # RULE_OFFSET, RULE_VAL_OFFSET: from the CFA
    register: int = 0  # RULE_REGISTER
    expression: bytes = b""  # RULE_EXPRESSION, RULE_VAL_EXPRESSION


@dataclass(slots=True)
class Row:
    """The rules of PCs from start up to end. The CFA is cfa_register + cfa_offset, or the
    expression cfa; with neither there is none."""

    start: int
    end: int
    return_address: int  # the column with the return address
    cfa_register: int = NO_REGISTER
    cfa_offset: int = 0
    cfa: bytes = b""
    cfa_space: int = 0
    rules: Sequence[Rule] = ()  # by column, ascending
    call_sites: Sequence[Rule] = ()  # this frame's own registers while a call is in progress
    signal_frame: bool = False
    window_save: bool = False

    def cfa_kind(self) -> "pb.CFAKind":
        if self.cfa:
            return pb.CFA_EXPRESSION
        return pb.CFA_NONE if self.cfa_register == NO_REGISTER else pb.CFA_REGISTER


def pack_rules(rules: Iterable[Rule]) -> pb.Rules:
    """A list of rules."""
    rules = list(rules)
    return pb.Rules(
        columns=[r.column for r in rules],
        kinds=[r.kind for r in rules],
        registers=[r.register for r in rules],
        offsets=[r.offset for r in rules],
        expressions=blobs(r.expression for r in rules),
    )


def unpack_rules(p: pb.Rules) -> list[Rule]:
    """The rules of a list."""
    n = len(p.columns)
    for name in ("kinds", "registers", "offsets"):
        check(f"Rules.{name}", getattr(p, name), n)
    columns = zip(p.columns, p.kinds, p.offsets, p.registers, split(p.expressions, n))
    return [Rule(*c) for c in columns]


def pack_rows(rows: Iterable[Row]) -> pb.Rows:
    """A list of rows."""
    rows = list(rows)
    return pb.Rows(
        starts=[r.start for r in rows],
        ends=[r.end for r in rows],
        cfa_kinds=[r.cfa_kind() for r in rows],
        cfa_registers=[r.cfa_register if r.cfa_kind() == pb.CFA_REGISTER else 0 for r in rows],
        cfa_offsets=[r.cfa_offset for r in rows],
        cfa_spaces=[r.cfa_space for r in rows],
        cfa_expressions=blobs(r.cfa for r in rows),
        rule_counts=[len(r.rules) for r in rows],
        rules=pack_rules(flat(rows, lambda r: r.rules)),
        call_site_counts=[len(r.call_sites) for r in rows],
        call_sites=pack_rules(flat(rows, lambda r: r.call_sites)),
        return_addresses=[r.return_address for r in rows],
        signal_frames=[r.signal_frame for r in rows],
        window_saves=[r.window_save for r in rows],
    )


def unpack_rows(p: pb.Rows) -> list[Row]:
    """The rows of a list."""
    n = len(p.starts)
    for name in (
        "ends", "cfa_kinds", "cfa_registers", "cfa_offsets", "cfa_spaces", "rule_counts", "call_site_counts",
        "return_addresses", "signal_frames", "window_saves",
    ):  # fmt: skip
        check(f"Rows.{name}", getattr(p, name), n)
    expressions = split(p.cfa_expressions, n)
    rules = list(lists("Rows.rule_counts", p.rule_counts, unpack_rules(p.rules)))
    sites = list(lists("Rows.call_site_counts", p.call_site_counts, unpack_rules(p.call_sites)))
    return [
        Row(
            p.starts[i],
            p.ends[i],
            p.return_addresses[i],
            p.cfa_registers[i] if p.cfa_kinds[i] == pb.CFA_REGISTER else NO_REGISTER,
            p.cfa_offsets[i],
            expressions[i],
            p.cfa_spaces[i],
            rules[i],
            sites[i],
            p.signal_frames[i],
            p.window_saves[i],
        )
        for i in range(n)
    ]
