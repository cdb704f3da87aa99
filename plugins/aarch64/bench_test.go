// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

const benchFile = "/usr/aarch64-linux-gnu/lib/libc.so.6"

// benchFunctions are the functions of libc that have call frame information, and its code.
func benchFunctions(b *testing.B) (functions []sdk.CodeRange, code []byte) {
	b.Helper()
	f, err := elf.Open(benchFile)
	if err != nil {
		oracle.Missing(b, "%v", err)
	}
	defer f.Close()
	text, frames := f.Section(".text"), f.Section(".eh_frame")
	code, err = text.Data()
	if err != nil {
		b.Fatal(err)
	}
	data, err := frames.Data()
	if err != nil {
		b.Fatal(err)
	}
	table, err := cfi.NewTable(cfi.Section{Name: frames.Name, Data: data, Address: frames.Addr, EH: true, Order: binary.LittleEndian, AddressSize: 8})
	if err != nil {
		b.Fatal(err)
	}
	for fde, err := range table.FDEs() {
		if err != nil {
			b.Fatal(err)
		}
		if fde.Start >= text.Addr && fde.End <= text.Addr+text.Size && fde.End > fde.Start {
			functions = append(functions, sdk.CodeRange{PC: fde.Start, Start: fde.Start, Code: code[fde.Start-text.Addr : fde.End-text.Addr], Bounded: true, Exact: true})
		}
	}
	return functions, code
}

// BenchmarkEffects reads every instruction of libc; ns/instruction is the figure.
func BenchmarkEffects(b *testing.B) {
	_, code := benchFunctions(b)
	b.ReportAllocs()
	var e effect
	for b.Loop() {
		for at := 0; at+instructionSize <= len(code); at += instructionSize {
			e = effect{}
			readEffect(binary.LittleEndian.Uint32(code[at:]), &e)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(code)/instructionSize), "ns/instruction")
}

// BenchmarkFunctions reads every sixteenth function of libc from its beginning.
func BenchmarkFunctions(b *testing.B) {
	functions, _ := benchFunctions(b)
	b.ReportAllocs()
	for b.Loop() {
		for i := 0; i < len(functions); i += 16 {
			frameRules(&functions[i])
		}
	}
}
