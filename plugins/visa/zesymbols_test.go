// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/sdk"
)

// zeEngine has the sections of a zebin.
type zeEngine map[string][]byte

func (zeEngine) ReadMemory(context.Context, sdk.MemoryRange, []byte) (int, error) {
	return 0, errors.New("no memory")
}

func (zeEngine) ReadRegisters(context.Context, uint64, []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, errors.New("no threads")
}

func (e zeEngine) ReadSection(_ context.Context, _ uint64, name string) ([]byte, error) {
	b, ok := e[name]
	if !ok {
		return nil, errors.New("no section " + name)
	}
	return b, nil
}

// zeSymbolTable makes .symtab and .strtab.
func zeSymbolTable(symbols ...zeSymbol) (table, names []byte) {
	table, names = make([]byte, symbolSize), []byte{0}
	for _, y := range symbols {
		table = binary.LittleEndian.AppendUint32(table, uint32(len(names)))
		table = append(table, y.typ, 0)
		table = binary.LittleEndian.AppendUint16(table, uint16(y.section))
		table = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(table, y.start), y.size)
		names = append(append(names, y.name...), 0)
	}
	return table, names
}

func TestFunctionsOfAZebinByItsSymbols(t *testing.T) {
	const size = 0x100
	// call at the start of 8 lanes: the lowest bits are the opcode.
	call := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, opcodeCall), uint64(0x20)<<32)
	info := "version: '1.0'\nkernels:\n- {name: k, execution_env: {simd_size: 16}}\n- {name: calls, execution_env: {simd_size: 8}}\n- {name: odd, execution_env: {simd_size: 7}}\n"
	e := zeEngine{".text.k": make([]byte, size), ".text.calls": append(call, make([]byte, size-16)...), ".text.odd": make([]byte, size), ".ze_info": []byte(info)}
	e[".symtab"], e[".strtab"] = zeSymbolTable(
		zeSymbol{"k", typeFunction, 1, 0, size}, zeSymbol{"_entry", typeFunction, 1, 0x10, size - 0x10},
		zeSymbol{"callee\xff", typeFunction, 1, 0x80, 0x40}, zeSymbol{"data", 1, 1, 0x20, 8}, zeSymbol{"outside", typeFunction, 1, size, 8},
		zeSymbol{"calls", typeFunction, 2, 0, 1 << 62}, zeSymbol{"behind", typeFunction, 2, 0x40, 8}, zeSymbol{"", typeFunction, 3, 0, 8}, zeSymbol{"empty", typeFunction, 3, 0, 0},
	)
	req := &sdk.OpenObjectRequest{Object: 1, Machine: machineIntelGT, Sections: []sdk.SectionInfo{{}}}
	for _, name := range []string{".text.k", ".text.calls", ".text.odd"} {
		req.Sections = append(req.Sections, sdk.SectionInfo{Name: name, Type: sectionProgBits, Flags: flagExec, Size: size})
	}
	for _, name := range []string{".ze_info", ".symtab", ".strtab"} {
		req.Sections = append(req.Sections, sdk.SectionInfo{Name: name, Size: uint64(len(e[name]))})
	}
	a, err := New().OpenObject(context.Background(), e, req)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(Description(), req); err != nil {
		t.Fatal(err)
	}
	var got []sdk.Function
	for _, f := range a.Functions {
		if f.Section < 3 {
			f.DefaultRules = nil
			got = append(got, f)
		}
	}
	want := []sdk.Function{
		{Name: "k", Section: 1, End: 0x80, Lanes: 16, Kind: sdk.KernelFunction}, // it calls nothing in itself
		{Name: "callee?", Section: 1, Start: 0x80, End: 0xc0, Lanes: 16},
		{Name: "calls", Section: 2, End: 0x40, Lanes: 8}, // a subroutine of it would not be outermost
		{Name: "behind", Section: 2, Start: 0x40, End: 0x48, Lanes: 8},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if p := strings.Join(a.Problems, "\n"); !strings.Contains(p, "simd_size is 7") {
		t.Errorf("problems: %s", p)
	}
}
