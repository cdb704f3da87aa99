// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// legacyForm rewrites the operations of the heterogeneous extension in a code
// object's call frame information into their older form, which is a byte
// shorter: a DW_OP_nop stands behind each.
func legacyForm(t *testing.T, file []byte) (rewritten int) {
	t.Helper()
	o, err := object.New("code object", file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := o.Section(".debug_frame").Data()
	if err != nil {
		t.Fatal(err)
	}
	table, err := cfi.NewTable(cfi.Section{Name: ".debug_frame", Data: data, Order: binary.LittleEndian, AddressSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	for fde, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		for in, err := range fde.Instructions() {
			if err != nil {
				t.Fatal(err)
			}
			for _, operand := range in.Operands {
				expr := operand.Expr
				for op, err := range locexpr.Decode(append([]byte(nil), expr...), locexpr.LLVMUser, 8, locexpr.LittleEndian) {
					if err != nil {
						t.Fatal(err)
					}
					if expr[op.Offset] != 0xe9 {
						continue
					}
					_, legacy, ok := locexpr.LLVMLegacy.Lookup(op.Op.Name)
					if !ok {
						t.Fatalf("no older form of %s", op.Op.Name)
					}
					end := len(expr)
					decoder := locexpr.Decoder{Expr: expr[op.Offset:], Dialect: locexpr.LLVMUser, AddressSize: 8}
					var first locexpr.Instruction
					if err := decoder.Next(&first); err != nil {
						t.Fatal(err)
					}
					var second locexpr.Instruction
					if decoder.More() && decoder.Next(&second) == nil {
						end = op.Offset + second.Offset
					}
					operands := append([]byte(nil), expr[op.Offset+2:end]...)
					expr[op.Offset] = legacy.Opcode
					copy(expr[op.Offset+1:], operands)
					expr[end-1] = 0x96
					rewritten++
				}
			}
		}
	}
	return rewritten
}

// TestWavesWalkByTheDialectOfTheirObject walks a wave of 64 lanes out of a
// recursive function: the CFA is an address of private_wave, return addresses
// and a frame pointer are in lanes of a vector register, which the caller's frame
// has in memory.
func TestWavesWalkByTheDialectOfTheirObject(t *testing.T) {
	file, err := os.ReadFile("../plugins/amdgpu/testdata/amd_h.gfx90a.cfi.co")
	if err != nil {
		t.Fatal(err)
	}
	legacy := append([]byte(nil), file...)
	if n := legacyForm(t, legacy); n < 10 {
		t.Fatalf("%d operations rewritten", n)
	}
	const bias = 0x7f0000000000
	lane := func(dst []byte, n int, v uint32) { binary.LittleEndian.PutUint32(dst[4*n:], v) }
	v41, saved := make([]byte, 256), make([]byte, 256)
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
			"registers": map[string]any{"PC": fmt.Sprintf("%#x", bias+0x16a4), "s32": "0x6000", "s33": "0x5000",
				"v41": hex.EncodeToString(v41), "EXEC": "0xffffffffffffffff"}}},
		"memory": []any{map[string]any{"file": "m", "space": "private_wave", "address": "0x5300", "scope": map[string]any{"wave": "w0"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string][]byte{"user": file, "legacy": legacy} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "wave.snapshot")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			z := zip.NewWriter(f)
			for member, data := range map[string][]byte{"snapshot.json": text, "amd_h.co": code, "m": saved} {
				w, err := z.Create(member)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write(data); err != nil {
					t.Fatal(err)
				}
			}
			if z.Close() != nil || f.Close() != nil {
				t.Fatal("closing the snapshot")
			}
			e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{amdgpu.New()}}, Sysroot: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			snap, err := e.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			stack := snap.Walk(context.Background(), snap.Threads()[0])
			var got []string
			for _, f := range stack.Frames {
				got = append(got, fmt.Sprintf("%#x %s", f.ModuleOffset, f.FoundBy))
			}
			want := []string{"0x16a4 context", "0x16f8 cfi", "0x18d0 cfi"}
			if diff := cmp.Diff(want, got); diff != "" || stack.Stopped.Reason != trace.StopOutermost {
				t.Errorf("stopped: %+v, problems %q\n%s", stack.Stopped, snap.Problems(), diff)
			}
		})
	}
}
