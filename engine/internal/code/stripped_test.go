// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// countedRules counts how often rows of code are asked for.
type countedRules struct {
	sdk.Architecture
	asked *int
}

func (c countedRules) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	*c.asked++
	return c.Architecture.FrameRules(ctx, e, req)
}

// withoutSymbols writes an object without symbols and debug information, and returns a function that is
// in it.
func withoutSymbols(t *testing.T, path string) (stripped string, function elf.Symbol) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > function.Size && elf.ST_BIND(s.Info) == elf.STB_LOCAL {
			function = s
		}
	}
	for i, s := range f.Sections {
		if s.Type == elf.SHT_SYMTAB || s.Name == ".eh_frame" || strings.HasPrefix(s.Name, ".debug_") {
			at := binary.LittleEndian.Uint64(b[40:]) + 64*uint64(i) //nolint:gosec // e_shoff, and a header of 64 bytes for each
			binary.LittleEndian.PutUint32(b[at+4:], uint32(elf.SHT_NOTE))
			binary.LittleEndian.PutUint64(b[at+32:], 0)
		}
	}
	stripped = filepath.Join(t.TempDir(), "stripped.co")
	if err := os.WriteFile(stripped, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return stripped, function
}

// TestCodeWithoutSymbolsIsReadOnce looks rows up at all instructions of a function that no
// symbol bounds: what one answer covers is not asked for again.
func TestCodeWithoutSymbolsIsReadOnce(t *testing.T) {
	path, function := withoutSymbols(t, "../../../plugins/amdgpu/testdata/amd_h.gfx90a.co")
	asked := 0
	loaded := moduleOf(t, object.NewStore(), path)
	loaded.Arch = "amdgpu"
	m := newLibrary(t, 0, countedRules{amdgpu.New(), &asked}).Load(loaded, Loading{})
	t.Cleanup(m.Close)
	rows := 0
	for at := function.Value; at < function.Value+function.Size; at += 4 {
		if row, err := m.Row(t.Context(), at, true); err == nil && row.By == trace.ByRules {
			rows++
		}
	}
	if rows < 30 || asked > 8 {
		t.Errorf("%s: %d rows, asked for %d times", function.Name, rows, asked)
	}
}

// piecewise answers rows for all code that it is sent, whose CFA tells what that was: a
// function with its parts, a function alone, or code without bounds.
type piecewise struct{ sdk.Architecture }

func (p piecewise) FrameRules(_ context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	answer := &sdk.FrameRulesAnswer{}
	for i := range req.Functions {
		r := &req.Functions[i]
		start, code := r.Piece(r.PC)
		row := cfi.Row{Start: start, End: start + uint64(len(code)), CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 7, Offset: 16}}
		switch {
		case len(r.Parts) > 0:
			row.CFA.Offset = 48
		case r.Bounded:
			row.CFA.Offset = 32
		}
		answer.Functions = append(answer.Functions, sdk.FrameRules{Rows: []cfi.Row{row}, Complete: true})
	}
	return answer, nil
}

// TestRowsOfCodeWithoutBoundsAreNotThoseOfParts has rows of code without a symbol that lie over
// functions with symbols and a part of one: these are read by their own bounds, in any order.
func TestRowsOfCodeWithoutBoundsAreNotThoseOfParts(t *testing.T) {
	const padding, part, function = 0x401924, 0x401102, 0x401894 // behind read_body, in read_body.cold, and in read_body
	want := map[uint64]int64{padding: 16, part: 48, function: 32}
	for _, order := range [][]uint64{{padding, part, function, padding, part}, {part, padding, part, function}, {function, part, padding, padding}} {
		m := newLibrary(t, 0, piecewise{x86_64.New()}).Load(moduleOf(t, nil, crash), Loading{})
		if err := m.Code.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, address := range order {
			row, err := m.Code.code.Row(t.Context(), &Lookup{PC: address, Address: address, IsExact: true})
			if err != nil {
				t.Fatalf("%#x: %v", address, err)
			}
			if got := row.Rules.CFA.Offset; got != want[address] {
				t.Errorf("lookup %d of %#x: CFA+%d, expected %d", i, order, got, want[address])
			}
		}
		m.Close()
	}
}
