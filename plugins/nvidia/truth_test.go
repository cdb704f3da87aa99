// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/examples/cuda-core/sass"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/locexpr"
)

// lastRegister bounds the registers that are looked at: the kernels have fewer.
const lastRegister = 64

// lane is a frame of an executed lane: the registers that are known in it.
type lane struct {
	locexpr.NoContext
	registers map[uint64]uint32
	local     []byte // up to sass.LocalEnd
}

func (l *lane) RegisterBits(reg uint64) (uint32, bool) {
	return 32, reg < 1<<32 && isRegister(uint32(reg))
}
func (l *lane) SpaceBits(s locexpr.AddressSpace) (uint32, bool) {
	info, ok := Description().Space(s)
	return info.Bits, ok
}
func (l *lane) ByteOrder() locexpr.ByteOrder { return locexpr.LittleEndian }

func (l *lane) Register(_ context.Context, reg uint64) (locexpr.Location, error) {
	v, ok := l.registers[reg]
	if !ok {
		return locexpr.UndefinedLocation(), nil
	}
	return locexpr.ImplicitLocation(binary.LittleEndian.AppendUint32(nil, v)), nil
}

func (l *lane) RegisterValue(_ context.Context, reg uint64) (uint64, error) {
	v, ok := l.registers[reg]
	if !ok {
		return 0, fmt.Errorf("register %#x is not known", reg)
	}
	return uint64(v), nil
}

func (l *lane) ReadMemory(_ context.Context, space locexpr.AddressSpace, _ locexpr.Scope, address uint64, dst []byte) error {
	begin := sass.LocalEnd - uint64(len(l.local))
	if space != local || address < begin || address+uint64(len(dst)) > sass.LocalEnd {
		return fmt.Errorf("no memory at %#x of space %d", address, space)
	}
	copy(dst, l.local[address-begin:])
	return nil
}

// caller returns the caller's PC and registers; false at the outermost frame.
func (l *lane) caller(t *testing.T, row *cfi.Row, defaults map[uint64]cfi.Rule) (uint64, *lane, bool) {
	t.Helper()
	ev := &locexpr.Evaluator{Dialect: locexpr.Canonical, AddressBits: 64, CFI: true}
	cfa, err := row.CFA.Location(t.Context(), ev, l)
	if err != nil {
		t.Fatalf("CFA: %v", err)
	}
	back, _ := row.Rule(uint64(pc))
	if back.Kind == cfi.Undefined {
		return 0, nil, false
	}
	value, err := ev.Value(t.Context(), back.Expr, l, locexpr.LocationEntry(cfa))
	if err != nil {
		t.Fatalf("PC: %v", err)
	}
	outer := &lane{registers: map[uint64]uint32{}, local: l.local}
	for column := uint64(r0); column < uint64(r0)+lastRegister; column++ {
		rule, ok := row.Rule(column)
		if !ok {
			rule = defaults[column]
		}
		place, err := rule.Location(t.Context(), ev, l, column, cfa)
		if err != nil {
			t.Fatalf("R%d: %v", column-uint64(r0), err)
		}
		var b [4]byte
		if place.Read(t.Context(), l, b[:], 32) == nil {
			outer.registers[column] = binary.LittleEndian.Uint32(b[:])
		}
	}
	return value.Uint64(), outer, true
}

// TestEveryInstructionOfExecutedKernels executes kernels instruction by instruction, and walks
// the stack before each: the return addresses are the ones that calls left, the stack pointers
// and all registers that rows claim to know what they were at the calls.
func TestEveryInstructionOfExecutedKernels(t *testing.T) {
	oracle.All(t)
	nvcc, nvdisasm := oracle.Tool(t, "nvcc"), oracle.Tool(t, "nvdisasm")
	for _, c := range []struct {
		arch                  string
		stackAt, parametersAt uint64 // in the constant bank
		options               string
		isForProof            bool // it takes ten seconds, and is alike
	}{
		{"sm_90", 0x28, 0x210, "-O3", false},
		{"sm_90", 0x28, 0x210, "-Xptxas -O0", true},
		{"sm_90", 0x28, 0x210, "-maxrregcount=32", true},
		{"sm_75", 0x28, 0x160, "-O3", true},
		{"sm_80", 0x28, 0x160, "-O3", true},
		{"sm_120", 0x37c, 0x380, "-O3", false},
	} {
		t.Run(c.arch+" "+c.options, func(t *testing.T) {
			if c.isForProof {
				proof.Only(t)
			}
			file := filepath.Join(t.TempDir(), "truth.cubin")
			oracle.Run(t, nvcc, append(strings.Fields(c.options), "-arch="+c.arch, "-cubin", "-o", file, "testdata/truth.cu")...)
			walkExecuted(t, nvdisasm, file, c.stackAt, c.parametersAt)
		})
	}
}

func walkExecuted(t *testing.T, nvdisasm, file string, stackAt, parametersAt uint64) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := readCubin(data)
	if err != nil {
		t.Fatal(err)
	}
	answer := c.open(t)
	defaults := map[uint64]cfi.Rule{}
	for _, r := range Description().DefaultRules {
		defaults[r.Column] = r.Rule
	}
	rowAt := func(at uint64) *cfi.Row {
		for i := range answer.Tables {
			for j := range answer.Tables[i].Rows {
				if r := &answer.Tables[i].Rows[j]; r.Start <= at && at < r.End && c.file.Sections[answer.Tables[i].Section].Name == ".text.kern" {
					return r
				}
			}
		}
		return nil
	}
	program, err := sass.Disassemble(nvdisasm, file, "kern")
	if err != nil {
		t.Fatal(err)
	}
	const base, words = 0x7000_0000_0000, 64
	w := &sass.Warp{Program: program, Memory: sass.Memory{}, Constant: make([]byte, 0x400), Special: func(int, string) uint32 { return 0 }}
	for i := range uint64(words) {
		w.Memory[base+4*i] = uint32(i * 7 % 13) //nolint:gosec // small
	}
	binary.LittleEndian.PutUint32(w.Constant[stackAt:], sass.LocalEnd)
	binary.LittleEndian.PutUint64(w.Constant[parametersAt:], base)
	binary.LittleEndian.PutUint64(w.Constant[parametersAt+8:], base)
	binary.LittleEndian.PutUint32(w.Constant[parametersAt+16:], 3)
	l := sass.NewLane(0)
	w.Lanes[0] = l
	var atCalls [][255]uint32 // registers when each call was made, the innermost last
	steps, frames, claims, wrong := 0, 0, 0, 0
	for l.State == sass.Ready && wrong < 20 {
		top := &lane{registers: map[uint64]uint32{}, local: l.Local}
		for i, v := range l.R {
			top.registers[uint64(r0)+uint64(i)] = v
		}
		at, f := l.PC, top
		for depth := len(l.Calls); ; depth-- {
			lookup := at
			if depth < len(l.Calls) {
				lookup--
			}
			row := rowAt(lookup)
			if row == nil {
				t.Fatalf("step %d: no row at %#x", steps, lookup)
			}
			to, outer, ok := f.caller(t, row, defaults)
			frames++
			if !ok {
				if depth != 0 {
					t.Errorf("at %#x: the stack ends %d frames early", l.PC, depth)
					wrong++
				}
				break
			}
			if depth == 0 || to != l.Calls[depth-1] {
				t.Errorf("at %#x, frame %d at %#x: returns to %#x, and the calls are %#x", l.PC, len(l.Calls)-depth, at, to, l.Calls)
				wrong++
				break
			}
			for i, v := range atCalls[depth-1][:lastRegister] {
				got, isKnown := outer.registers[uint64(r0)+uint64(i)]
				if isKnown {
					claims++
				}
				if isKnown && got != v || !isKnown && i == 1 {
					t.Errorf("at %#x, caller of frame %d at %#x: R%d is %#x (known: %v), and was %#x", l.PC, len(l.Calls)-depth, at, i, got, isKnown, v)
					wrong++
				}
			}
			at, f = to, outer
		}
		before, registers := slices.Clone(l.Calls), l.R
		if _, err := w.Step(); err != nil {
			t.Fatalf("step %d: %v", steps, err)
		}
		steps++
		switch n := len(l.Calls); {
		case n > len(before):
			atCalls = append(atCalls, registers)
		case n < len(before):
			atCalls = atCalls[:n]
		}
	}
	t.Logf("%d instructions, %d frames, %d registers of callers", steps, frames, claims)
	if l.State != sass.Exited || claims == 0 {
		t.Errorf("the lane ended in state %v at %#x: %v", l.State, l.PC, l.Fault)
	}
}
