// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/internal/enginetest"
)

// waveSnapshot writes a snapshot of a wave of 64 lanes that is in a recursive
// function: return addresses and a frame pointer are in lanes of VGPR41, which
// the caller's frame has in private memory.
func waveSnapshot(t *testing.T) string {
	t.Helper()
	code, err := os.ReadFile("../plugins/amdgpu/testdata/amd_h.gfx90a.cfi.co")
	if err != nil {
		t.Fatal(err)
	}
	const bias = 0x7f0000000000
	lane := func(dst []byte, n int, v uint32) { binary.LittleEndian.PutUint32(dst[4*n:], v) }
	v41, saved := make([]byte, 256), make([]byte, 256)
	for i := range 64 {
		lane(v41, i, 0x100+uint32(i))
		lane(saved, i, 0x200+uint32(i))
	}
	lane(v41, 0, 0x16f8) // behind the second call in _Z3reciPi
	lane(v41, 1, bias>>32)
	lane(v41, 4, 0x2000)   // its frame pointer
	lane(saved, 0, 0x18d0) // behind a call in the kernel
	lane(saved, 1, bias>>32)
	text, err := json.Marshal(map[string]any{
		"format_version": 1,
		"modules": []any{map[string]any{"path": "amd_h.co", "arch": "amdgpu", "processor": "gfx90a", "file": "amd_h.co",
			"segments": []any{map[string]any{"address": "0x1600", "size": "0x300", "start": fmt.Sprintf("%#x", bias+0x1600)}}}},
		"threads": []any{map[string]any{"id": "w0", "arch": "amdgpu", "processor": "gfx90a", "lanes": 64,
			"registers": map[string]any{"PC": fmt.Sprintf("%#x", bias+0x16a4), "s2": "0x77", "s32": "0x6000", "s33": "0x5000", "s100": "0x99",
				"v41": hex.EncodeToString(v41), "EXEC": "0xff00ffffffffffff"}}},
		"memory": []any{map[string]any{"file": "m", "space": "private_wave", "address": "0x5300", "scope": map[string]any{"wave": "w0"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return archive(t, map[string][]byte{"snapshot.json": text, "amd_h.co": code, "m": saved})
}

// TestStackOfAWave prints the stack of a wave, with the scalar registers and the
// masks of lanes in every frame.
func TestStackOfAWave(t *testing.T) {
	t.Parallel()
	path := waveSnapshot(t)
	registers := func(a *enginetest.Ask) { a.Stack.Registers = true }
	r := enginetest.Report(t, path, registers)
	var got []string
	for _, f := range r.Threads[0].Frames {
		got = append(got, fmt.Sprintf("%s %s %s %s@%s %v", f.ModuleOffset, f.Function, f.FoundBy, f.CFA, f.CFASpace, f.Registers))
	}
	want := []string{
		"0x16a4 rec(int, int*) context 0x5000@private_wave map[EXEC:0xff00ffffffffffff PC:0x7f00000016a4 SGPR100:0x99 SGPR2:0x77 SGPR32:0x6000 SGPR33:0x5000]",
		"0x16f8 rec(int, int*) cfi 0x2000@private_wave map[EXEC:0xff00ffffffffffff PC:0x7f00000016f8 SGPR100:0x99 SGPR2:0x77 SGPR32:0x5000 SGPR33:0x2000 SGPR34:0x102 SGPR35:0x103]",
		"0x18d0 hk(int*, int) cfi 0x0@private_wave map[EXEC:0xff00ffffffffffff PC:0x7f00000018d0 SGPR100:0x99 SGPR2:0x77 SGPR32:0x2000 SGPR33:0x204 SGPR34:0x202 SGPR35:0x203]",
	}
	if diff := cmp.Diff(want, got); diff != "" || r.Threads[0].Stopped.Reason != "outermost" {
		t.Errorf("stopped: %v (-want +got)\n%s", r.Threads[0].Stopped, diff)
	}
	text := enginetest.Text(t, path, registers)
	lines := "        PC      0x00007f00000016a4  EXEC    0xff00ffffffffffff  SGPR2   0x00000077          SGPR32  0x00006000\n" +
		"        SGPR33  0x00005000          SGPR100 0x00000099\n"
	if !strings.Contains(text, lines) {
		t.Errorf("no\n%s in\n%s", lines, text)
	}
	// A vector register of a caller is read by an expression.
	found := evaluated(t, path, "regx v41", func(e *job.Evaluate) { e.Thread, e.Frame, e.Read = "w0", 1, 2048 })
	if len(found.Places) != 1 || found.Places[0].Address != "0x5300" || !strings.HasPrefix(found.Read, "d0180000007f0000020200000302000004020000") {
		t.Errorf("%+v", found)
	}
}

// An evaluation is the location in its JSON.
type evaluation struct {
	Read   string
	Places []struct{ Address string }
}

// evaluated evaluates an expression of AMDGPU to a location.
func evaluated(t *testing.T, path, expr string, set func(*job.Evaluate)) (found evaluation) {
	t.Helper()
	e := job.NewEvaluate()
	e.Arch, e.Expr, e.Kind = "amdgpu", &expr, "location"
	set(&e)
	in := enginetest.Engine(t, e.Engine(engine.Options{}))
	target, err := in.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	x, err := e.Expression(in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := x.Evaluate(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := errors.Join(got.Err, got.WriteJSON(&b), json.Unmarshal(b.Bytes(), &found)); err != nil {
		t.Fatalf("%s: %v\n%s", expr, err, &b)
	}
	return found
}
