// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
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
	const folder = "../plugins/nvidia/testdata/"
	cubin, err := os.ReadFile(folder + "debug90.cubin")
	clang, clangErr := os.ReadFile(folder + "clang90.cubin")
	if err = errors.Join(err, clangErr); err != nil {
		t.Fatal(err)
	}
	const kernelAt, recAt, helperAt, cfa, sAt = 0x7f0000100000, 0x7f0000200000, 0x7f0000500000, 0xfffd00, 0x7f0000400000
	stack := make([]byte, 256) // up to the CFA of rec
	put := func(offset int, words ...uint32) {
		for i, w := range words {
			binary.LittleEndian.PutUint32(stack[len(stack)+offset+4*i:], w)
		}
	}
	put(-88, 11, 0x3f800000, 0x40000000, 0x40400000) // s
	put(-72, 21, 22, 23, 24)                         // buf
	put(-56, 12, 0x3f800000)                         // t
	put(-16, 31, 0x40a00000)                         // s of the kernel
	put(-256, 77)                                    // sh
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
	other := map[string]any{
		"path": "clang", "arch": "nvidia", "processor": "sm_90", "file": "clang.cubin",
		"segments": []any{map[string]string{"section": ".text._Z6helperiPi1S", "address": "0x0", "size": "0xa00", "start": fmt.Sprintf("%#x", helperAt)}},
	}
	thread := func(id string, pc uint64, more map[string]string) map[string]any {
		registers := map[string]string{"PC": fmt.Sprintf("%#x", pc), "ACTIVE": "0x1", "R1": fmt.Sprintf("%#x", cfa-88)}
		for name, value := range more {
			registers[name] = value
		}
		return map[string]any{
			"id": id, "arch": "nvidia", "processor": "sm_90", "lanes": 32, "registers": registers,
			"lane_states": []any{map[string]any{"lane": 0, "registers": registers}},
		}
	}
	memory := func(file, space, id string, address uint64) map[string]any {
		scope := map[string]any{"wave": id}
		if space == "local" {
			scope["lane"] = 0
		}
		return map[string]any{"file": file, "space": space, "address": fmt.Sprintf("%#x", address), "scope": scope}
	}
	text, err := json.Marshal(map[string]any{
		"format_version": 1, "modules": []any{module, other},
		"threads": []any{
			thread("rec", recAt+0x700, map[string]string{"R0": "0x3", "R18": "0x7", "R24": "0x300000", "R25": "0x7f00"}),
			thread("kern", kernelAt+0x800, map[string]string{
				"R1": fmt.Sprintf("%#x", cfa-16), "R19": "0x9", "R22": "0x1", "R23": "0x41", "R26": "0x0", "R27": "0x3ff80000"}),
			thread("clang", helperAt+0x400, map[string]string{"R1": fmt.Sprintf("%#x", cfa-56), "R0": fmt.Sprintf("%#x", sAt&0xffffffff), "R3": fmt.Sprintf("%#x", sAt>>32)}),
		},
		"memory": []any{
			map[string]any{"file": "s.bin", "address": fmt.Sprintf("%#x", sAt)}, memory("stack.bin", "local", "clang", cfa-uint64(len(stack))),
			memory("stack.bin", "local", "rec", cfa-uint64(len(stack))), memory("parameters.bin", "param", "kern", 0x210),
			memory("stack.bin", "shared", "kern", 0x400), memory("stack.bin", "local", "kern", cfa-uint64(len(stack))),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	found := enginetest.Report(t, archive(t, map[string][]byte{"snapshot.json": text, "debug.cubin": cubin, "clang.cubin": clang, "s.bin": stack[len(stack)-88:][:16], "stack.bin": stack, "parameters.bin": parameters}),
		func(a *enginetest.Ask) { a.Stack.Locals = true })
	zeros := ""
	for i := range 31 {
		zeros += fmt.Sprintf(" [%d]:0", i+1)
	}
	got := map[string]string{}
	for _, th := range found.Threads {
		if len(th.Frames) == 0 || th.Frames[0].Locals == nil {
			t.Fatalf("thread %s: %+v", th.ID, th)
		}
		for _, v := range *th.Frames[0].Locals {
			got[th.ID+" "+v.Name] = variableText(&v)
		}
	}
	if diff := cmp.Diff(map[string]string{
		"rec n": "7", "rec p": "0x7f0000300000", "rec i": "3",
		"rec s":   "a:11 b:[0]:1 [1]:2 [2]:3 in local",
		"rec t":   "a:12 b:[0]:1 [1]:0 [2]:0 in local",
		"rec buf": "[0]:21 [1]:22 [2]:23 [3]:24 in local",
		"kern p":  "0x7f0000300000 in param", "kern n": "4 in param",
		"kern s":  "a:31 b:[0]:5 [1]:0 [2]:0 in local",
		"clang n": "12 in local", "clang p": "0x0 in local", "clang i": "0 in local", "clang s": "a:11 b:[0]:1 [1]:2 [2]:3",
		"clang buf": "[0]:0 [1]:0 [2]:0 [3]:0 in local",
		"kern t":    "9", "kern flag": "true", "kern c": "65 'A'", "kern d": "1.5",
		"kern sh": "[0]:77" + zeros + " in shared",
	}, got); diff != "" {
		t.Error(diff)
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
