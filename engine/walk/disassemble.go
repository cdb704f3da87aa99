// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Bounds of one disassembly.
const (
	maxLines        = 1 << 12 // before an address, and after it
	maxLinesCode    = 1 << 20 // bytes of code before an address
	decodedAtOnce   = 1 << 17 // bytes of code in one request
	instructionSize = 16      // bytes of an instruction where the architecture does not say
)

// Disassemble returns the instruction that begins at an address, such as a PC of a thread's
// stack, and up to before instructions before it and after after it: fewer where the function
// begins or ends, or where there is no more code. Instructions of x86 cannot be read backwards:
// they are read from the start of the function, by its call frame information or its symbol.
// Where neither has it, or where no instruction that is read from there begins at the address,
// none come before it. The error wraps sdk.ErrNotImplemented for an architecture that does not
// disassemble, and target.ErrNoMemory where there is no code.
func (p *Process) Disassemble(ctx context.Context, th *trace.Thread, address uint64, before, after int) (lines []trace.Instruction, err error) {
	s := p.stateOf(ctx, th)
	switch {
	case s == nil:
		return nil, errors.New("the thread is not of this target")
	case s.arch == nil:
		return nil, s.failure
	}
	d := &disassembly{Process: p, arch: s.arch, processor: s.Processor, lanes: s.lanes(), segment: p.Segment(address), address: address}
	err = object.Guard(func() error {
		lines, err = d.lines(ctx, min(max(before, 0), maxLines), min(max(after, 0), maxLines))
		return err
	})
	return lines, err
}

// disassembly disassembles the code around an address.
type disassembly struct {
	*Process
	arch      *machine
	processor string
	lanes     uint32
	segment   *code.Segment // nil: the address is in no module
	address   uint64
	// isReturn is true where the instruction that ends at the address is wanted: the call
	// before a return address.
	isReturn bool

	llvm sdk.LLVMTarget // the target for LLVM's tools
	note string         // why the instructions before the address are not known; "": they are
}

func (d *disassembly) lines(ctx context.Context, before, after int) ([]trace.Instruction, error) {
	start, end := d.bounds()
	if size := uint64(after+1) * d.maxInstruction(); end-d.address > size {
		end = d.address + size
	}
	if before == 0 && !d.isReturn {
		start = d.address
	}
	lines, err := d.decode(ctx, start, end, before+1)
	index := d.find(lines)
	if (err != nil || index < 0) && start < d.address {
		d.note = fmt.Sprintf("code that is read from the function's beginning, %#x, has no instruction there", start)
		lines, err = d.decode(ctx, d.address, end, 0)
		index = d.find(lines)
	}
	switch {
	case err != nil:
		return nil, err
	case index >= 0:
		lines[index].IsAt = true
	case len(lines) == 0 || !d.isReturn:
		return nil, fmt.Errorf("no instruction at %#x: %w", d.address, target.ErrNoMemory)
	default:
		index = 0
	}
	return lines[max(0, index-before):min(len(lines), index+after+1)], nil
}

// maxInstruction returns the length of the longest instruction.
func (d *disassembly) maxInstruction() uint64 {
	return uint64(cmp.Or(d.arch.Description.MaxInstruction, instructionSize))
}

// find returns the index of the wanted instruction; negative: there is none.
func (d *disassembly) find(lines []trace.Instruction) int {
	return slices.IndexFunc(lines, func(l trace.Instruction) bool {
		if d.isReturn {
			return l.Address+uint64(len(l.Bytes)) == d.address
		}
		return l.Address == d.address
	})
}

// bounds returns the bounds of the function at the address, or of a function that ends there or
// a little before, with a call that does not return. Where neither is known, or the start is
// too far away, code is read from the address on.
func (d *disassembly) bounds() (start, end uint64) {
	if d.segment == nil || d.segment.Module.Object == nil {
		d.note = "where the function begins is not known"
		return d.address, ^uint64(0)
	}
	base := d.segment.Start - d.segment.Address
	inside := []uint64{d.address, d.address - 1}
	if d.isReturn {
		inside = inside[1:]
	}
	d.note = "neither call frame information nor a symbol says where the function begins"
	for _, address := range inside {
		b := d.segment.Module.Code.BoundsAt(address - base)
		if !b.IsKnown {
			continue
		}
		if d.address-(b.Start+base) > maxLinesCode {
			d.note = fmt.Sprintf("the function begins more than %d KiB before", maxLinesCode>>10)
			continue
		}
		d.note = ""
		if b.End+base > d.address || d.isReturn {
			return b.Start + base, max(b.End+base, d.address)
		}
		return b.Start + base, d.segment.End
	}
	return d.address, d.segment.End
}

// decode disassembles code, as far as it is there, and keeps the instructions from keep before
// the address on.
func (d *disassembly) decode(ctx context.Context, start, end uint64, keep int) (lines []trace.Instruction, err error) {
	for from := start; from < end; {
		code := make([]byte, min(end-from, decodedAtOnce))
		n, err := d.readCode(from, code)
		if n == 0 && from < d.address+1 {
			return nil, fmt.Errorf("code at %#x: %w", from, err)
		}
		isWhole := n < len(code) || from+uint64(n) >= end
		more, err := d.decodeSome(ctx, from, code[:n], isWhole)
		if err != nil {
			return nil, err
		}
		if len(more) == 0 {
			break
		}
		last := &more[len(more)-1]
		from = last.Address + uint64(len(last.Bytes))
		lines = append(lines, more...)
		if i := slices.IndexFunc(lines, func(l trace.Instruction) bool { return l.Address >= d.address }); i < 0 && len(lines) > keep {
			lines = slices.Clone(lines[len(lines)-keep:])
		}
		if isWhole {
			break
		}
	}
	return lines, nil
}

// decodeSome disassembles code. Where there is more of it, instructions at its end are left
// out, which may be cut.
func (d *disassembly) decodeSome(ctx context.Context, start uint64, code []byte, isWhole bool) ([]trace.Instruction, error) {
	processor := d.processor
	if d.segment != nil {
		processor = cmp.Or(processor, d.segment.Module.Processor)
	}
	answer, err := d.arch.Plugin.Disassemble(ctx, &sdk.DisassembleRequest{Address: start, Code: code, Processor: processor, Lanes: d.lanes})
	if err != nil {
		return nil, err
	}
	d.llvm = answer.LLVM
	lines := make([]trace.Instruction, 0, len(answer.Instructions))
	for i := range answer.Instructions {
		instruction := &answer.Instructions[i]
		offset := instruction.Address - start
		if !isWhole && offset+d.maxInstruction() > uint64(len(code)) {
			break
		}
		lines = append(lines, trace.Instruction{Address: instruction.Address, Bytes: code[offset : offset+uint64(instruction.Size)], Text: instruction.Text})
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
