// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/enginetest"
)

// TestVariablesOfCUDA reads variables of a cubin of -G that was not placed: in registers of PTX,
// in local and shared memory and among parameters.
func TestVariablesOfCUDA(t *testing.T) {
	cubin, err := os.ReadFile("../plugins/nvidia/testdata/debug90.cubin")
	if err != nil {
		t.Fatal(err)
	}
	const kernelAt, recAt, cfa = 0x7f0000100000, 0x7f0000200000, 0xfffd00
	stack := make([]byte, 256) // up to the CFA of rec
	put := func(offset int, words ...uint32) {
		for i, w := range words {
			binary.LittleEndian.PutUint32(stack[len(stack)+offset+4*i:], w)
		}
	}
	put(-88, 11, 0x3f800000, 0x40000000, 0x40400000) // s
	put(-72, 21, 22, 23, 24)                         // buf
	parameters := make([]byte, 28)
	binary.LittleEndian.PutUint64(parameters, 0x7f0000300000)
	binary.LittleEndian.PutUint32(parameters[8:], 4)
	module := map[string]any{
		"path": "debug", "arch": "nvidia", "processor": "sm_90", "file": "debug.cubin",
		"segments": []any{
			map[string]string{"section": ".text.kern", "address": "0x0", "size": "0x1180", "start": fmt.Sprintf("%#x", kernelAt)},
			map[string]string{"section": ".text._Z3reciPi1S", "address": "0x0", "size": "0x1100", "start": fmt.Sprintf("%#x", recAt)},
		},
	}
	thread := func(id string, pc uint64, more map[string]string) map[string]any {
		registers := map[string]string{"PC": fmt.Sprintf("%#x", pc), "ACTIVE": "0x1", "R1": fmt.Sprintf("%#x", cfa-88)}
		for name, value := range more {
			registers[name] = value
		}
		return map[string]any{"id": id, "arch": "nvidia", "processor": "sm_90", "lanes": 32, "registers": registers}
	}
	memory := func(file, space, id string, address uint64) map[string]any {
		return map[string]any{"file": file, "space": space, "address": fmt.Sprintf("%#x", address), "scope": map[string]any{"wave": id}}
	}
	text, err := json.Marshal(map[string]any{
		"format_version": 1, "modules": []any{module},
		"threads": []any{
			thread("rec", recAt+0x700, map[string]string{"R0": "0x3", "R18": "0x7", "R24": "0x300000", "R25": "0x7f00"}),
			thread("kern", kernelAt+0x800, map[string]string{
				"R1": fmt.Sprintf("%#x", cfa-16), "R19": "0x9", "R22": "0x1", "R23": "0x41", "R26": "0x0", "R27": "0x3ff80000"}),
		},
		"memory": []any{
			memory("stack.bin", "local", "rec", cfa-uint64(len(stack))), memory("parameters.bin", "param", "kern", 0x210),
			memory("stack.bin", "shared", "kern", 0x400), memory("stack.bin", "local", "kern", cfa-uint64(len(stack))),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	found := enginetest.Report(t, archive(t, map[string][]byte{"snapshot.json": text, "debug.cubin": cubin, "stack.bin": stack, "parameters.bin": parameters}),
		func(a *enginetest.Ask) { a.Stack.Locals = true })
	got := map[string]string{}
	for _, th := range found.Threads {
		if len(th.Frames) == 0 || th.Frames[0].Locals == nil {
			t.Fatalf("thread %s: %+v", th.ID, th)
		}
		for _, v := range *th.Frames[0].Locals {
			got[th.ID+" "+v.Name] = variableText(&v)
		}
	}
	if diff := cmp.Diff(map[string]string{}, got); diff != "" {
		t.Errorf("%s", diff)
	}
}

// variableText writes a variable: its space, and its value or parts.
func variableText(v *report.Variable) string {
	text := v.Status
	if v.Status == "ok" || v.Status == "partial" {
		text = ""
	}
	if v.Value != nil {
		text += *v.Value
	}
	for i := range v.Children {
		text += fmt.Sprintf(" %s:%s", v.Children[i].Name, variableText(&v.Children[i]))
	}
	if v.AddressSpace != "" && v.Kind != "" {
		text += " in " + v.AddressSpace
	}
	if v.Problem != "" {
		text += " (" + v.Problem + ")"
	}
	return strings.TrimSpace(text)
}
