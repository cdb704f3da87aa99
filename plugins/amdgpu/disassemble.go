// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
	"github.com/unwindd/unwindd/sdk"
)

// llvmTriple is the triple of code objects of the HSA runtime ("Target
// Triples").
const llvmTriple = "amdgcn-amd-amdhsa"

// Disassemble writes each instruction as its words, and behind them where control goes
// and which registers are written. LLVM's tools, which have the names, read the same
// code by the answer's LLVM.
//
// Words that begin no instruction are shown alone. The length of such an
// instruction is not known; as in LLVM, it is taken for one word.
func (architecture) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	name, _, _ := strings.Cut(strings.ToLower(req.Processor), ":")
	lanes := codeLanes(name, req.Lanes)
	target, err := isa.NewTarget(name, lanes)
	if err != nil {
		return nil, err
	}
	answer := &sdk.DisassembleAnswer{LLVM: sdk.LLVMTarget{Triple: llvmTriple, CPU: name}}
	if lanes != usualLanes(name) {
		answer.LLVM.Features = fmt.Sprintf("+wavefrontsize%d", lanes)
	}
	for code := req.Code; len(code) > 0; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(answer.Instructions) == sdk.MaxBatch {
			return nil, fmt.Errorf("code of %d bytes has more than %d instructions", len(req.Code), sdk.MaxBatch)
		}
		pc := req.Address + uint64(len(req.Code)-len(code))
		text, size := disassemble(target, code, pc)
		answer.Instructions = append(answer.Instructions, sdk.Instruction{Address: pc, Size: uint32(size), Text: text}) //nolint:gosec // at most maxInstruction
		code = code[size:]
	}
	return answer, nil
}

// codeLanes returns the wave size that code is read for: the thread's, else the one that
// compilers choose for the processor.
func codeLanes(name string, lanes uint32) uint32 {
	if p := processorNamed(name); p != nil && !p.canRun(lanes) {
		return p.lanes[0]
	} else if p == nil && lanes != wave32 && lanes != wave64 {
		return usualLanes(name)
	}
	return lanes
}

// disassemble writes the instruction at the beginning of code, which is not empty.
func disassemble(target isa.Target, code []byte, pc uint64) (text string, size int) {
	inst, err := target.Decode(code, pc)
	if err != nil {
		return wordsText(code[:min(4, len(code))]) + "  // no instruction that is known", min(4, len(code))
	}
	return wordsText(code[:inst.Size]) + "  // " + knownText(&inst), int(inst.Size)
}

// wordsText writes code as an assembler takes it.
func wordsText(code []byte) string {
	var b strings.Builder
	if len(code)%4 != 0 {
		b.WriteString(".byte ")
		for i, c := range code {
			fmt.Fprintf(&b, "%s0x%02x", between(i), c)
		}
		return b.String()
	}
	b.WriteString(".long ")
	for i := 0; i < len(code); i += 4 {
		fmt.Fprintf(&b, "%s0x%08x", between(i), binary.LittleEndian.Uint32(code[i:]))
	}
	return b.String()
}

// between returns the separator before element i of a list.
func between(i int) string {
	if i == 0 {
		return ""
	}
	return ", "
}

// knownText describes an instruction: its flow and the registers that it
// writes.
func knownText(inst *isa.Inst) string {
	var parts []string
	if flow := flowText(inst); flow != "" {
		parts = append(parts, flow)
	}
	if writes := writesText(&inst.Writes); writes != "" {
		parts = append(parts, "writes "+writes)
	} else if inst.Flow == isa.Next {
		parts = append(parts, "writes no register")
	}
	return strings.Join(parts, ", ")
}

// conditions are the conditions of branches, by operation.
var conditions = map[isa.Op]string{
	isa.SCbranchSCC0: "if SCC is 0", isa.SCbranchSCC1: "if SCC is 1",
	isa.SCbranchVCCZ: "if VCC is 0", isa.SCbranchVCCNZ: "if VCC is not 0",
	isa.SCbranchEXECZ: "if EXEC is 0", isa.SCbranchEXECNZ: "if EXEC is not 0",
	isa.SCbranchOther: "or goes on",
}

// flowText describes where control goes; "" where it goes to the next
// instruction.
func flowText(inst *isa.Inst) string {
	switch inst.Flow {
	case isa.Branch:
		return fmt.Sprintf("jumps to %#x", inst.Target)
	case isa.CondBranch:
		return fmt.Sprintf("jumps to %#x %s", inst.Target, conditions[inst.Op])
	case isa.Indirect:
		return "jumps to the address in " + operandText(&inst.Src[0])
	case isa.Call:
		return fmt.Sprintf("calls %#x", inst.Target)
	case isa.IndirectCall:
		return "calls the address in " + operandText(&inst.Src[0])
	case isa.End:
		return "ends the wave"
	case isa.Fork:
		return "goes where the branch stack says"
	}
	return ""
}

// operandText names the registers of an address.
func operandText(o *isa.Operand) string {
	if o.Kind != isa.Scalar {
		return "no register"
	}
	var list registerNames
	for i := range uint16(o.Width) {
		list.add(scalarName(isa.Reg(o.Reg + i))) //nolint:gosec // at most two of below 133
	}
	return list.String()
}

// writesText names the registers that an instruction writes, as LLVM does.
func writesText(w *isa.Writes) string {
	var list registerNames
	for _, s := range &w.Vectors {
		file := map[isa.Kind]string{isa.VGPR: "v", isa.AGPR: "a"}[s.Kind]
		if file == "" {
			break
		}
		for i := range uint16(s.Count) {
			list.add(file, int(s.First+i))
		}
	}
	w.EachScalar(func(r isa.Reg) { list.add(scalarName(r)) })
	if w.HasUnknownVectors {
		list.add("vector registers that M0 selects", -1)
	}
	if w.HasUnknownScalars {
		list.add("scalar registers that M0 selects", -1)
	}
	return list.String()
}

// namedPairs are the names of scalar registers that have one, by the first of each
// pair; m0, null and SCC have names of their own.
var namedPairs = map[isa.Reg]string{
	isa.VCCLo: "vcc", isa.ExecLo: "exec", isa.FlatScratchLo: "flat_scratch", isa.XNACKMaskLo: "xnack_mask",
}

// scalarName returns the name of a scalar register, with index -1, or the name of its
// file and its index there.
func scalarName(r isa.Reg) (file string, index int) {
	switch {
	case r < isa.VCCLo:
		return "s", int(r)
	case r >= isa.TTMP0 && r < isa.M0:
		return "ttmp", int(r - isa.TTMP0)
	case r == isa.M0:
		return "m0", -1
	case r == isa.Null:
		return "null", -1
	case r == isa.SCC:
		return "scc", -1
	}
	return namedPairs[r&^1] + [2]string{"_lo", "_hi"}[r&1], -1
}

// registerNames collects names of registers; neighbours in one file become a
// run.
type registerNames struct {
	names       []string
	file        string // of the last run; "": there is none
	first, last int
}

func (l *registerNames) add(file string, index int) {
	switch {
	case index >= 0 && file == l.file && index == l.last+1:
		l.last++
		l.names[len(l.names)-1] = fmt.Sprintf("%s[%d:%d]", file, l.first, l.last)
		return
	case index >= 0:
		l.file, l.first, l.last = file, index, index
		l.names = append(l.names, fmt.Sprintf("%s%d", file, index))
		return
	}
	l.file = ""
	low, isHigh := strings.CutSuffix(file, "_hi")
	if n := len(l.names); isHigh && n > 0 && l.names[n-1] == low+"_lo" {
		l.names[n-1] = low
		return
	}
	l.names = append(l.names, file)
}

func (l *registerNames) String() string { return strings.Join(l.names, ", ") }
