package locexpr

import "strings"

// A Step is one operation of an evaluation that has been executed, for people
// to follow it.
type Step struct {
	Offset int      // of the operation, in bytes from the start of its expression
	Op     string   // the operation in the text form, "DW_OP_plus_uconst 8"
	Depth  int      // 0 in the expression itself, 1 in one that it calls or that its context evaluates, and so on
	Stack  []string // the entries after it, the top one last
}

// formatStep is FormatText. The tables of operations lead to trace, and FormatText
// to the tables, so the language wants a step between them.
var formatStep func(expr []byte, o TextOptions) string

func init() { formatStep = FormatText }

// trace reports the operation from offset to end.
func (ev *evaluation) trace(offset, end int) {
	step := Step{Offset: offset, Depth: ev.e.nesting - 1 + ev.calls, Stack: make([]string, ev.n)}
	step.Op = formatStep(ev.dec.Expr[offset:end], TextOptions{
		Dialect: ev.dec.Dialect, AddressSize: ev.dec.AddressSize, OffsetSize: ev.dec.OffsetSize,
		Order: ev.dec.Order, Names: ev.by.Names,
	})
	for i := range step.Stack {
		step.Stack[i] = ev.stack[i].text()
	}
	ev.by.Trace(step)
}

// text returns the text of an entry that is on the stack.
func (s *Entry) text() string {
	switch s.kind {
	case genericEntry:
		return Value{word: s.value.word}.String()
	case addressEntry:
		return MemoryLocation(DefaultSpace, s.value.word).String()
	case valueEntry:
		return s.value.String()
	}
	text := s.location.String()
	if s.isIncomplete() {
		return strings.Replace(text, "composite", "incomplete composite", 1)
	}
	return text
}
