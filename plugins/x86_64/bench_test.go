// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"debug/elf"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
)

const benchFile = "/lib/x86_64-linux-gnu/libc.so.6"

// benchCode is the code of libc.
func benchCode(b *testing.B) (*elf.Section, []byte) {
	b.Helper()
	f, err := elf.Open(benchFile)
	if err != nil {
		oracle.Missing(b, "%v", err)
	}
	defer f.Close()
	text := f.Section(".text")
	code, err := text.Data()
	if err != nil {
		b.Fatal(err)
	}
	return text, code
}

// BenchmarkEffects reads every instruction of libc; ns/instruction is the figure.
func BenchmarkEffects(b *testing.B) {
	_, code := benchCode(b)
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n = 0
		for at := 0; at < len(code); n++ {
			e, _ := mode.ReadEffect(code[at:min(len(code), at+x86code.MaxInstruction)])
			at += max(1, int(e.Length))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/instruction")
}

// BenchmarkFrameRules reads the code of libc around addresses, as that of a
// function without a symbol.
func BenchmarkFrameRules(b *testing.B) {
	const around, every = 4096, 20011
	text, code := benchCode(b)
	b.ReportAllocs()
	for b.Loop() {
		for at := around; at+around < len(code); at += every {
			mode.Rules(&sdk.CodeRange{Start: text.Addr + uint64(at-around), Code: code[at-around : at+around], PC: text.Addr + uint64(at), Exact: true})
		}
	}
}

// BenchmarkFunctions reads functions from their beginning, and a signal trampoline.
func BenchmarkFunctions(b *testing.B) {
	f, err := elf.Open(benchFile)
	if err != nil {
		oracle.Missing(b, "%v", err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		b.Fatal(err)
	}
	text, code := benchCode(b)
	b.ReportAllocs()
	for b.Loop() {
		for i := 0; i < len(symbols); i += 16 {
			s := &symbols[i]
			if s.Size == 0 || s.Value < text.Addr || s.Value+s.Size > text.Addr+text.Size {
				continue
			}
			body := code[s.Value-text.Addr:][:s.Size]
			mode.Rules(&sdk.CodeRange{Name: s.Name, Start: s.Value, Code: body, PC: s.Value + s.Size/2, Bounded: true, Exact: true})
		}
		mode.Rules(&sdk.CodeRange{Start: 0x1000, Code: []byte("\x90\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05\x90"), PC: 0x1001, Exact: true})
	}
}
