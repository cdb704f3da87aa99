// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/confine"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// bundledAMDGPU is AMDGPU as a process of its own, which is this test's executable.
var bundledAMDGPU = []confine.Bundled{{Name: "amdgpu", New: amdgpu.New, Description: amdgpu.Description}}

// gappedFunctions are functions, by name, with code that no row covers: some of it,
// all of it, or none.
var gappedFunctions = map[string]string{
	"whole": `
	s_mov_b32 s4, 0
	s_setpc_b64 s[30:31]
`, "dead": `
	s_mov_b32 s4, 0
	s_branch 1f
	s_mov_b32 s5, 0
	s_add_u32 s32, s32, 0x400
1:	s_setpc_b64 s[30:31]
	s_nop 0
	s_nop 0
`, "lost": `
	s_mov_b64 s[30:31], 0
	s_mov_b32 s4, 0
	s_nop 0
	s_endpgm
	s_nop 0
`, "unread": `
	s_mov_b32 s4, 0
	s_cbranch_scc1 1f
	s_setpc_b64 s[30:31]
1:	.long 0xffffffff
	s_nop 0
`, "failed": `
	s_cbranch_scc1 1
	s_mov_b32 s0, 0xbe800080
	s_add_u32 s32, s32, 0x400
	s_setpc_b64 s[30:31]
`,
}

// gappedCode is an object with gappedFunctions, whose call frame information says
// where they are and nothing else.
func gappedCode(t *testing.T) *waveCode {
	t.Helper()
	needLLVM(t)
	// With a second section the module's addresses differ from the addresses of .text.
	text := ".section .before,\"ax\",@progbits\n s_nop 0\n.text\n"
	for _, name := range slices.Sorted(maps.Keys(gappedFunctions)) {
		text += ".globl " + name + "\n.type " + name + ",@function\n" + name + ":\n.cfi_startproc\n" + gappedFunctions[name] +
			".cfi_endproc\n.size " + name + ", . - " + name + "\n"
	}
	path := filepath.Join(t.TempDir(), "gaps.o")
	cmd := exec.Command("llvm-mc-22", "-triple", "amdgcn-amd-amdhsa", "-mcpu=gfx90a", "-filetype=obj", "-o", path)
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return &waveCode{path: path, processor: "gfx90a", lanes: 64}
}

// anAnswer is the knowledge of the walk about a PC: a row, or why there is none.
type anAnswer struct {
	Row    any
	Reason string
}

// textStart is where .text begins in the addresses that the module has inside.
func textStart(w *waveTest) uint64 {
	w.t.Helper()
	for _, s := range w.target.process.Loaded()[0].Code.Sections() {
		if s.Name == ".text" {
			return s.Address
		}
	}
	w.t.Fatal("no .text")
	return 0
}

// answers are about all PCs of .text, each exact and, but for the first, not.
func (w *waveTest) answers() (pcs []uint64, list []anAnswer) {
	w.t.Helper()
	start := textStart(w)
	for pc := range w.target.process.Loaded()[0].Object.Section(".text").Size / 2 {
		for _, exact := range []bool{true, false}[:min(1+pc, 2)] {
			pcs, list = append(pcs, 2*pc), append(list, w.answer(start+2*pc, exact))
		}
	}
	return pcs, list
}

func (w *waveTest) answer(pc uint64, exact bool) anAnswer {
	w.t.Helper()
	row, err := w.target.process.Loaded()[0].Row(context.Background(), pc, exact)
	var none *code.NoRow
	switch {
	case errors.As(err, &none):
		return anAnswer{Reason: none.Error()}
	case err != nil:
		w.t.Fatal(err)
	}
	return anAnswer{Row: *row.Rules}
}

// forgetful is an architecture whose answers are of use for one PC each.
type forgetful struct{ sdk.Architecture }

func (f forgetful) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	a, err := f.Architecture.FrameRules(ctx, e, req)
	if err == nil {
		for i := range a.Functions {
			a.Functions[i].Gaps, a.Functions[i].Complete = nil, false
		}
	}
	return a, err
}

// TestGapsAreReadOncePerFunction asks for every PC of functions of which rows cover
// but a part: the plugin is asked about each function once, and what is said of
// every PC is what the plugin says when it is asked about that PC.
func TestGapsAreReadOncePerFunction(t *testing.T) {
	code := gappedCode(t)
	asked, askedAlways := 0, 0
	pcs, got := newWaveTest(t, code, countingRules{amdgpu.New(), &asked}).answers()
	_, want := newWaveTest(t, code, forgetful{countingRules{amdgpu.New(), &askedAlways}}).answers()
	reasons := map[string]int{}
	for i := range got {
		if d := cmp.Diff(want[i], got[i]); d != "" {
			t.Errorf("%#x: (-want +got)\n%s", pcs[i], d)
		}
		if got[i].Reason != "" {
			reasons[got[i].Reason]++
		}
	}
	t.Logf("%d PCs: %d functions read, %d otherwise; without a row: %v", len(got), asked, askedAlways, reasons)
	if asked != len(gappedFunctions) || askedAlways < 5*asked || len(reasons) < 4 {
		t.Errorf("%d functions were read %d times, %d times for single PCs, for %d reasons", len(gappedFunctions), asked, askedAlways, len(reasons))
	}
}

// TestRestartedPluginReadsCodeOfOpenObjects kills the plugin after it was told of an
// object: the next process is told too, and reads the code as the first did.
func TestRestartedPluginReadsCodeOfOpenObjects(t *testing.T) {
	code := gappedCode(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pcs, want := newWaveTest(t, code, amdgpu.New()).answers()
	w := newWaveTestWith(t, code, plugin.Options{Self: self, Bundled: bundledAMDGPU})
	w.answer(textStart(w), true)
	arch := w.target.process.Loaded()[0].Code.Machine().Plugin
	got := want[:0:0]
	for i, pc := range pcs {
		// There is a process where one was asked since the last was killed.
		if pid := arch.PID(); pid != 0 {
			if err := oracle.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
		}
		got = append(got, w.answer(textStart(w)+pc, i == 0 || i%2 == 1))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if n := arch.Generation(); n != uint64(len(gappedFunctions)) {
		t.Errorf("%d processes, expected one for each of %d functions", n, len(gappedFunctions))
	}
}
