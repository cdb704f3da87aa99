// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"iter"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/listing"
	"github.com/unwindd/unwindd/engine/internal/pe"
)

// jsonUnwind is the unwind information of an entry of .pdata, in `dump cfi`.
type jsonUnwind struct {
	Section       string           `json:"section"`
	Offset        uint64           `json:"offset"`
	Kind          string           `json:"kind"` // "UNWIND_INFO"
	Start         string           `json:"start"`
	End           string           `json:"end"`
	Version       uint8            `json:"version"`
	Flags         []string         `json:"flags"`
	PrologSize    uint8            `json:"prolog_size"`
	FrameRegister string           `json:"frame_register,omitempty"`
	FrameOffset   uint8            `json:"frame_offset,omitempty"`
	Handler       string           `json:"handler,omitempty"`
	Chained       *jsonRange       `json:"chained,omitempty"`
	Epilogs       []jsonRange      `json:"epilogs,omitempty"`
	Instructions  []jsonUnwindCode `json:"instructions"`
}

type jsonRange struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// jsonUnwindCode is an operation of the prologue; location is behind its instruction.
type jsonUnwindCode struct {
	Op       string   `json:"op"`
	Operands []string `json:"operands"`
	Location string   `json:"location"`
}

// unwindFlags are the names in the document.
var unwindFlags = []struct {
	bit  uint8
	name string
}{
	{pe.HasExceptionHandler, "UNW_FLAG_EHANDLER"}, {pe.HasTerminationHandler, "UNW_FLAG_UHANDLER"}, {pe.IsChained, "UNW_FLAG_CHAININFO"},
}

func rangeOf(start, end uint64) jsonRange {
	return jsonRange{fmt.Sprintf("0x%x", start), fmt.Sprintf("0x%x", end)}
}

// unwind is an entry in the format of the output.
func (c *CallFrames) unwind(e *listing.UnwindEntry) jsonUnwind {
	u := e.Info
	r := rangeOf(e.Start, e.End)
	out := jsonUnwind{
		Section: e.Section, Offset: e.Offset, Kind: "UNWIND_INFO", Start: r.Start, End: r.End,
		Version: u.Version, Flags: []string{}, PrologSize: u.PrologSize, Instructions: []jsonUnwindCode{},
	}
	for _, f := range unwindFlags {
		if u.Flags&f.bit != 0 {
			out.Flags = append(out.Flags, f.name)
		}
	}
	if u.FrameRegister != 0 {
		out.FrameRegister, out.FrameOffset = c.Register(pe.DWARFRegister(pe.UnwindCode{Register: u.FrameRegister})), u.FrameOffset
	}
	if u.Handler != 0 {
		out.Handler = fmt.Sprintf("0x%x", u.Handler)
	}
	if u.Chained != nil {
		chained := rangeOf(u.Chained.Start, u.Chained.End)
		out.Chained = &chained
	}
	for _, p := range u.Epilogs {
		out.Epilogs = append(out.Epilogs, rangeOf(p.Start, p.End))
	}
	for _, code := range u.Codes {
		out.Instructions = append(out.Instructions, jsonUnwindCode{
			"UWOP_" + code.Operation.String(), c.unwindOperands(u, code), fmt.Sprintf("0x%x", e.Start+uint64(code.Offset)),
		})
	}
	return out
}

// unwindOperands are the operands of an operation: a register, and bytes.
func (c *CallFrames) unwindOperands(u *pe.UnwindInfo, code pe.UnwindCode) []string {
	operands := []string{}
	switch code.Operation {
	case pe.SetFPReg:
		return append(operands, c.Register(pe.DWARFRegister(pe.UnwindCode{Register: u.FrameRegister})), fmt.Sprint(u.FrameOffset))
	case pe.PushNonvol, pe.SaveNonvol, pe.SaveNonvolFar, pe.SaveXMM128, pe.SaveXMM128Far:
		operands = append(operands, c.Register(pe.DWARFRegister(code)))
	}
	if code.Operation != pe.PushNonvol {
		operands = append(operands, fmt.Sprint(code.Value))
	}
	return operands
}

// unwindJSON adds the entries of .pdata to a list.
func (c *CallFrames) unwindJSON(l *jsonList) error {
	return entriesJSON(l, c.Unwind, c.marshalUnwind)
}

// entriesJSON adds entries to a list; nil: there are none.
func entriesJSON[T any](l *jsonList, entries iter.Seq2[T, error], write func(T) (string, error)) error {
	if entries == nil {
		return nil
	}
	for e, err := range entries {
		if err != nil {
			l.problems.add(err)
			continue
		}
		text, err := write(e)
		if err != nil {
			return err
		}
		l.next()
		l.put(text)
		if err := l.check(); err != nil {
			return err
		}
	}
	return nil
}

// marshalUnwind is an entry as JSON.
func (c *CallFrames) marshalUnwind(e *listing.UnwindEntry) (string, error) {
	if e.ARM64 != nil {
		return marshal(c.unwindARM64(e))
	}
	return marshal(c.unwind(e))
}

// unwindText writes the entries of .pdata for people; blank separates them from earlier
// output.
func (c *CallFrames) unwindText(b *Printer, p paint, blank layout) error {
	if c.Unwind == nil {
		return nil
	}
	for e, err := range c.Unwind {
		if err != nil {
			c.Problem(err)
			continue
		}
		b.printf(blank)
		blank = "\n"
		if e.ARM64 != nil {
			c.textARM64(b, p, e)
		} else {
			c.textX64(b, p, e)
		}
		if err := b.check(); err != nil {
			return err
		}
	}
	return nil
}

// textX64 writes an entry for x86-64.
func (c *CallFrames) textX64(b *Printer, p paint, e *listing.UnwindEntry) {
	out := c.unwind(e)
	b.printf("%s+%08x  %s  %s to %s  version %d  prologue of %d bytes\n", out.Section, out.Offset, p.function("UNWIND_INFO"), out.Start, out.End, out.Version, out.PrologSize)
	var fields []string
	if len(out.Flags) > 0 {
		fields = append(fields, out.Flags...)
	}
	if out.FrameRegister != "" {
		fields = append(fields, fmt.Sprintf("frame register %s+%d", out.FrameRegister, out.FrameOffset))
	}
	if out.Handler != "" {
		fields = append(fields, "handler "+out.Handler)
	}
	if out.Chained != nil {
		fields = append(fields, fmt.Sprintf("chained to %s to %s", out.Chained.Start, out.Chained.End))
	}
	for _, epilog := range out.Epilogs {
		fields = append(fields, fmt.Sprintf("epilogue %s to %s", epilog.Start, epilog.End))
	}
	if len(fields) > 0 {
		b.printf("          %s\n", strings.Join(fields, ", "))
	}
	for _, instruction := range out.Instructions {
		b.printf("          %s  %-20s %s\n", instruction.Location, instruction.Op, strings.Join(instruction.Operands, ", "))
	}
}

// unwindFunctions calls one for every entry of .pdata.
func (c *CallFrames) unwindFunctions(one func(*function) error, problem func(error)) error {
	if c.Unwind == nil {
		return nil
	}
	for e, err := range c.Unwind {
		if err != nil {
			problem(err)
			continue
		}
		f := function{
			section: e.Section, offset: e.Offset, start: e.Start, end: e.End,
			rows:          func(yield func(*cfi.Row) bool) error { return e.Rows(func(r *pe.Row) bool { return yield(&r.Row) }) },
			isSignalFrame: e.IsSignalFrame(),
		}
		if err := one(&f); err != nil {
			return err
		}
	}
	return nil
}
