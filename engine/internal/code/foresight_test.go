// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestAForesightLearns has a walk that needs everything that is asked for, one that needs nothing
// of it, and one that needs a single answer.
func TestAForesightLearns(t *testing.T) {
	run := func(calls int, used func(asked int) int) (total, most int) {
		var f Foresight
		for range calls {
			n := f.Next()
			if n > 0 {
				f.Requested(n)
			}
			for range used(n) {
				f.Used()
			}
			total, most = total+n, max(most, n)
		}
		return total, most
	}
	if total, most := run(1, func(n int) int { return n }); total != 0 || most != 0 {
		t.Errorf("a single call asks for %d answers beside, expected none", total)
	}
	if total, most := run(100, func(n int) int { return n }); most != maxAhead || total < 90*maxAhead {
		t.Errorf("100 calls ask for %d answers beside, at most %d, where all are needed, expected %d soon", total, most, maxAhead)
	}
	if total, _ := run(1000, func(int) int { return 0 }); total > 20 {
		t.Errorf("1000 calls ask for %d answers beside, where none is needed, expected few", total)
	}
	if _, most := run(1000, func(n int) int { return min(n, 1) }); most > 8 {
		t.Errorf("calls ask for up to %d answers beside, where one of them is needed, expected 8", most)
	}
}

// nowhere is a walk that does not know where it goes.
type nowhere struct{}

func (nowhere) Places(*Object, int) []Place { return nil }

// withoutFrames writes an object without call frame information, and returns its functions by
// address: of those that overlap, one.
func withoutFrames(t *testing.T, path string) (bare string, list []elf.Symbol) {
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
	for i, s := range f.Sections {
		if s.Name == ".eh_frame" || s.Name == ".eh_frame_hdr" || strings.HasPrefix(s.Name, ".debug_") {
			at := binary.LittleEndian.Uint64(b[40:]) + 64*uint64(i) //nolint:gosec // e_shoff, and a header of 64 bytes for each
			binary.LittleEndian.PutUint32(b[at+4:], uint32(elf.SHT_NOTE))
			binary.LittleEndian.PutUint64(b[at+32:], 0)
		}
	}
	for i, p := range f.Progs {
		if p.Type == elf.PT_GNU_EH_FRAME {
			binary.LittleEndian.PutUint32(b[binary.LittleEndian.Uint64(b[32:])+56*uint64(i):], uint32(elf.PT_NULL)) //nolint:gosec // e_phoff, and a header of 56 bytes for each
		}
	}
	bare = filepath.Join(t.TempDir(), "bare")
	if err := os.WriteFile(bare, b, 0o600); err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(symbols, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	for _, s := range symbols {
		if n := len(list); elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 8 && (n == 0 || s.Value >= list[n-1].Value+list[n-1].Size) {
			list = append(list, s)
		}
	}
	return bare, list
}

// wholeFunctions answers for all PCs of a function, and counts how many calls and functions it is
// asked about.
type wholeFunctions struct {
	sdk.Architecture
	calls, functions *int
}

func (a wholeFunctions) FrameRules(_ context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	*a.calls++
	answer := &sdk.FrameRulesAnswer{}
	for _, f := range req.Functions {
		*a.functions++
		answer.Functions = append(answer.Functions, sdk.FrameRules{Complete: f.Bounded, Rows: []cfi.Row{{
			Start: f.Start, End: f.Start + uint64(len(f.Code)), ReturnAddress: uint64(x86_64.Description().ReturnAddress),
			CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(x86_64.Description().SP)},
		}}})
	}
	return answer, nil
}

// TestNeighboursAreReadTogether looks up a row in each of 500 functions, for a walk that
// does not say where it goes: where a plugin reads whole functions, those beside the one that is
// needed are asked about with it. The rows are the same as by single questions.
func TestNeighboursAreReadTogether(t *testing.T) {
	path, functions := withoutFrames(t, crash)
	functions = functions[100:600]
	calls, asked, callsAlone, askedAlone := 0, 0, 0, 0
	load := func(calls, asked *int) *Module {
		m := newLibrary(t, 0, wholeFunctions{x86_64.New(), calls, asked}).Load(moduleOf(t, object.NewStore(), path), Loading{})
		t.Cleanup(m.Close)
		return m
	}
	together, alone := load(&calls, &asked), load(&callsAlone, &askedAlone)
	read := 0
	for i, f := range functions {
		got, err := together.RowAhead(t.Context(), f.Value+4, true, nowhere{})
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if i == 0 && (calls != 1 || asked != 1) {
			t.Errorf("%d calls about %d functions for the first one, expected one about one", calls, asked)
		}
		want, err := alone.Row(t.Context(), f.Value+4, true)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want.Rules, got.Rules); diff != "" || got.By != want.By || got.IsComplete != want.IsComplete {
			t.Fatalf("%s: alone (-), together (+):\n%s", f.Name, diff)
		}
		if got.By == trace.ByRules {
			read++
		}
	}
	if read < len(functions)*9/10 || callsAlone < read*9/10 {
		t.Fatalf("%d of %d functions are read, by %d calls: the object has call frame information", read, len(functions), callsAlone)
	}
	if calls > 60 {
		t.Errorf("%d calls about %d functions, expected 60 at most", calls, asked)
	}
	if asked > 2*len(functions) {
		t.Errorf("%d functions are asked about for %d that are needed", asked, len(functions))
	}
}
