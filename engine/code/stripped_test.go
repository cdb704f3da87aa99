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

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/plugins/amdgpu"
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
	path, function := withoutSymbols(t, "../../plugins/amdgpu/testdata/amd_h.gfx90a.co")
	asked := 0
	loaded := moduleOf(t, object.NewStore(), path)
	loaded.Arch = "amdgpu"
	m := newLibrary(t, 0, countedRules{amdgpu.New(), &asked}).Load(loaded, Loading{})
	t.Cleanup(m.Close)
	rows := 0
	for at := function.Value; at < function.Value+function.Size; at += 4 {
		if row, err := m.Row(t.Context(), at, true); err == nil && row.By == ByRules {
			rows++
		}
	}
	if rows < 30 || asked > 8 {
		t.Errorf("%s: %d rows, asked for %d times", function.Name, rows, asked)
	}
}
