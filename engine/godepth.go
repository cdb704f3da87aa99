package engine

import (
	"debug/elf"

	"github.com/unwindd/unwindd/cfi"
)

// findDepth makes a row of what the table of the Go runtime says of the stack, of
// which bounds gets the function. Many programs are linked without their call
// frame information (-ldflags=-w), which the linker makes of the same table.
func (m *module) findDepth(lookup uint64, source *rowSource, bounds *codeBounds) (found bool) {
	if m.symbols == nil || m.Object.Machine() != uint16(elf.EM_X86_64) || m.isLaid() {
		return false
	}
	d, ok, err := m.symbols.Depth(lookup)
	if err != nil {
		m.problem("%v", err)
	}
	if !ok {
		return false
	}
	if !bounds.known {
		*bounds = codeBounds{d.Function.Start, d.Function.End, true, d.Function.Name}
	}
	if d.Uncertain || d.Bytes < 0 {
		return false // the code knows more
	}
	// A call pushes the return address, from which the depth counts.
	column := uint64(m.arch.desc.PC)
	source.row, source.by = &cfi.Row{
		Start: d.Start, End: d.End,
		CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(m.arch.desc.SP), Offset: d.Bytes + 8},
		Rules:         []cfi.RegisterRule{{Column: column, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}},
		ReturnAddress: column,
	}, ByCFI
	return true
}
