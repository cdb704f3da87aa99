// SPDX-License-Identifier: Apache-2.0

package locexpr

import (
	"fmt"
	"strings"
)

// Step is one operation of an evaluation that has been executed, for people to follow it.
type Step struct {
	Offset int      // of the operation, in bytes from the start of its expression
	Op     string   // the operation in the text form, "DW_OP_plus_uconst 8"; after 16 MiB of steps its name alone
	Depth  int      // 0 in the expression itself, 1 in one that it calls or that its context evaluates, and so on
	Stack  []string // the entries after it, the top one last; after 16 MiB of steps the first is the number of omitted ones: "12 more"
}

// formatStep is FormatText. The tables of operations lead to trace, and FormatText
// to the tables, so the language wants a step between them.
var formatStep func(expr []byte, o TextOptions) string

func init() { formatStep = FormatText }

// trace reports the operation from offset to end.
func (ev *evaluation) trace(offset, end int) {
	step := Step{Offset: offset, Depth: ev.e.nesting - 1 + ev.calls, Op: ev.inst.Op.Name}
	if ev.e.traced < maxTraced {
		step.Op = formatStep(ev.dec.Expr[offset:end], TextOptions{
			Dialect: ev.dec.Dialect, AddressSize: ev.dec.AddressSize, OffsetSize: ev.dec.OffsetSize,
			Order: ev.dec.Order, Names: ev.settings.Names,
		})
		ev.e.traced += len(step.Op)
	}
	step.Stack = ev.traceStack()
	ev.settings.Trace(step)
}

// What all steps of an evaluation, and of those within it, may have of text.
const (
	maxTraced  = 1 << 24 // bytes
	entryBytes = 16      // that an entry counts besides its text
)

// traceStack returns the texts of the entries, from the top one down as long as
// there is room.
func (ev *evaluation) traceStack() []string {
	first := ev.n
	stack := make([]string, ev.n)
	for first > 0 && ev.e.traced < maxTraced {
		first--
		stack[first] = ev.stack[first].text(min(maxText, maxTraced-ev.e.traced))
		ev.e.traced += len(stack[first]) + entryBytes
	}
	if first == 0 {
		return stack
	}
	return append([]string{fmt.Sprintf("%d more", first)}, stack[first:]...)
}

// text returns the text of an entry that is on the stack, of a location about
// limit bytes at most.
func (s *Entry) text(limit int) string {
	switch s.kind {
	case genericEntry:
		return Value{word: s.value.word}.String()
	case addressEntry:
		return MemoryLocation(DefaultSpace, s.value.word).String()
	case valueEntry:
		return s.value.String()
	}
	text := s.location.textOf(limit)
	if s.isIncomplete() {
		return strings.Replace(text, "composite", "incomplete composite", 1)
	}
	return text
}
