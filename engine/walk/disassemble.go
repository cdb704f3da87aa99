package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// A Line is an instruction of a target.
type Line struct {
	Address uint64
	Bytes   []byte
	Text    string // as the architecture's plugin writes it
	IsAt    bool   // it is the one at the address that was asked for
}

// Bounds on what is disassembled at once.
const (
	maxLines        = 1 << 12 // before an address, and after it
	maxLinesCode    = 1 << 18 // bytes of code before an address
	instructionRoom = 16      // bytes of an instruction where the architecture does not say
)

// Disassemble returns the instruction that begins at an address, such as a PC of a
// thread's stack, as many as before before it, and as many as after after it: fewer
// where the function begins or ends, or where there is no more code. Instructions of
// x86 cannot be read backwards: they are read from where the function begins, by its
// call frame information or its symbol. Where neither says that, or where what is
// read from there has no instruction at the address, none come before it. The error
// wraps sdk.ErrNotImplemented of an architecture that does not disassemble, and
// target.ErrNoMemory where there is no code.
func (p *Process) Disassemble(ctx context.Context, th *target.Thread, address uint64, before, after int) (lines []Line, err error) {
	s := p.stateOf(ctx, th)
	switch {
	case s == nil:
		return nil, errors.New("the thread is not of this target")
	case s.arch == nil:
		return nil, s.failure
	}
	d := &disassembly{Process: p, thread: s, segment: p.Segment(address), address: address}
	err = object.Guard(func() error {
		lines, err = d.lines(ctx, min(max(before, 0), maxLines), min(max(after, 0), maxLines))
		return err
	})
	return lines, err
}

// A disassembly is of the code around an address.
type disassembly struct {
	*Process
	thread  *thread
	segment *code.Segment // nil: the address is in no module
	address uint64
}

func (d *disassembly) lines(ctx context.Context, before, after int) ([]Line, error) {
	start, end := d.bounds()
	room := uint64(d.thread.arch.Description.MaxInstruction)
	if room == 0 {
		room = instructionRoom
	}
	if size := uint64(after+1) * room; end-d.address > size {
		end = d.address + size
	}
	if before == 0 {
		start = d.address
	}
	lines, err := d.decode(ctx, start, end)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(lines, func(l Line) bool { return l.Address == d.address })
	if at < 0 && start < d.address {
		if lines, err = d.decode(ctx, d.address, end); err != nil {
			return nil, err
		}
		at = 0
	}
	if at < 0 || len(lines) == 0 {
		return nil, fmt.Errorf("no instruction at %#x: %w", d.address, target.ErrNoMemory)
	}
	lines[at].IsAt = true
	return lines[max(0, at-before):min(len(lines), at+after+1)], nil
}

// bounds are where the function at the address begins and ends, or the function that
// ends there or a little before, with a call that does not return. Where neither is
// known, or the beginning is too far away, code is read from the address on.
func (d *disassembly) bounds() (start, end uint64) {
	if d.segment == nil || d.segment.Module.Object == nil {
		return d.address, ^uint64(0)
	}
	base := d.segment.Start - d.segment.Address
	for _, at := range []uint64{d.address, d.address - 1} {
		b := d.segment.Module.Code.BoundsAt(at - base)
		if !b.IsKnown || d.address-(b.Start+base) > maxLinesCode {
			continue
		}
		if b.End+base > d.address {
			return b.Start + base, b.End + base
		}
		return b.Start + base, d.segment.End
	}
	return d.address, d.segment.End
}

// decode disassembles code that has the address, as far as it is there.
func (d *disassembly) decode(ctx context.Context, start, end uint64) ([]Line, error) {
	bytes := make([]byte, end-start)
	n, err := d.readCode(start, bytes)
	if d.address-start >= uint64(n) {
		return nil, fmt.Errorf("code at %#x: %w", d.address, err)
	}
	bytes = bytes[:n]
	processor := d.thread.Processor
	if d.segment != nil {
		processor = cmp.Or(processor, d.segment.Module.Processor)
	}
	answer, err := d.thread.arch.Plugin.Disassemble(ctx, &sdk.DisassembleRequest{Address: start, Code: bytes, Processor: processor})
	if err != nil {
		return nil, err
	}
	lines := make([]Line, len(answer.Instructions))
	for i := range answer.Instructions {
		in := &answer.Instructions[i]
		offset := in.Address - start
		lines[i] = Line{Address: in.Address, Bytes: bytes[offset : offset+uint64(in.Size)], Text: in.Text}
	}
	return lines, nil
}

// readCode reads code of a module, or of memory.
func (d *disassembly) readCode(address uint64, code []byte) (n int, err error) {
	if d.segment != nil {
		if n, err = d.segment.Module.ReadCode(d.segment.ObjectAddress(address), code); n > 0 {
			return n, err
		}
	}
	n, err = d.state.ReadMemory(locexpr.DefaultSpace, address, code)
	if n == 0 && err == nil {
		err = target.ErrNoMemory
	}
	return n, err
}
