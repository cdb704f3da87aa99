// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/disassembler"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// ModuleCode disassembles code of a module from start up to end, which are addresses of its
// code object, like the addresses of the instructions. lanes is how many lanes the threads have
// that execute it; 0: as the object has it. Texts are the program's; nil: the architecture's,
// where isNamed reports whether they are the names of all instructions. There are fewer
// instructions where the code cannot be read or decoded to its end. The error wraps
// sdk.ErrNotImplemented for an architecture that does not disassemble, and target.ErrNoMemory
// where there is no code.
func (p *Process) ModuleCode(
	ctx context.Context, m *code.Module, start, end uint64, lanes uint32, program *disassembler.Program,
) (lines []trace.Instruction, isNamed bool, err error) {
	arch, err := p.shared.machine(m.Arch)
	if err != nil {
		return nil, false, err
	}
	if lanes == 0 {
		if f := m.Code.FunctionAt(ctx, start); f != nil {
			lanes = f.Lanes
		}
	}
	processor := m.Processor
	if m.Object != nil && processor == "" {
		described, _ := arch.Description.ObjectProcessor(m.Object.Flags())
		processor = described.Name
	}
	d := &disassembly{
		Process: p, arch: arch, processor: processor, lanes: lanes, address: start,
		segment: &code.Segment{Start: start, End: end, Module: m, Address: start},
	}
	err = object.Guard(func() error {
		lines, err = d.decode(ctx, start, end, 0)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	reader := CodeReader{process: p, program: program}
	reader.askProgram(ctx, []*targetCode{{trace.FrameCode{Lines: lines}, d.llvm}})
	return lines, d.llvm.Triple == "" || program != nil, nil
}
