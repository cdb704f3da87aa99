// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/oracle"
)

func hexOf(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// listedCode is an instruction as objdump lists it.
var listedCode = regexp.MustCompile(`(?m)^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*(?:\t(.*))?$`)

// TestCodeOfCoreEqualsObjdump holds the code of every frame of a core against objdump: the
// instructions, and that the current one is at the PC, or is the call that ends there.
func TestCodeOfCoreEqualsObjdump(t *testing.T) {
	listed := map[uint64]string{}
	for _, m := range listedCode.FindAllStringSubmatch(oracle.Run(t, "objdump", "-d", "-w", filepath.Join(crashDir, "server")), -1) {
		listed[hexOf(t, m[1])] = strings.ReplaceAll(m[2], " ", "") + " " + m[3]
	}
	frames := 0
	for _, count := range []int{1, 4, 7} {
		for _, th := range stackJSON(t, serverCore, "--code", fmt.Sprint(count)).Threads {
			isTop := true
			for i := range th.Frames {
				f := &th.Frames[i]
				if f.Inlined {
					if f.Code != nil {
						t.Errorf("an inlined call has code: %+v", f)
					}
					continue
				}
				frames++
				checkCodeLines(t, f, isTop, count, listed)
				isTop = false
			}
		}
	}
	if frames < 60 {
		t.Errorf("%d frames", frames)
	}
}

func checkCodeLines(t *testing.T, f *report.Frame, isTop bool, count int, listed map[uint64]string) {
	t.Helper()
	current, next := 0, uint64(0)
	for i := range *f.Code {
		l := &(*f.Code)[i]
		at := hexOf(t, l.PC)
		code, want, _ := strings.Cut(listed[at], " ")
		size := uint64(len(l.Bytes) / 2)
		isAt := at == hexOf(t, f.PC)
		if !isTop {
			isAt = at+size == hexOf(t, f.PC)
		}
		switch {
		case code != l.Bytes:
			t.Errorf("frame %s: %s at %s, objdump has %s", f.PC, l.Bytes, l.PC, code)
		case i > 0 && at != next:
			t.Errorf("frame %s: %s is not behind the instruction before", f.PC, l.PC)
		case isAt != l.Current:
			t.Errorf("frame %s: %s is current: %v", f.PC, l.PC, l.Current)
		case l.Current && !isTop && !strings.Contains(want, "call"):
			t.Errorf("frame %s: the current instruction is %s", f.PC, want)
		}
		if next = at + size; l.Current {
			current++
		}
	}
	if len(*f.Code) > count || len(*f.Code) < min(count, 2) || current != 1 || f.CodeProblem != "" {
		t.Errorf("frame %s: %d instructions, %d of them current, %q", f.PC, len(*f.Code), current, f.CodeProblem)
	}
}

// TestCodeInText: the text has what JSON has, with a mark, and folds the same stacks.
func TestCodeInText(t *testing.T) {
	out, _, status := unwindd(t, "stack", "--code", "3", serverCore)
	plain, _, _ := unwindd(t, "stack", serverCore)
	if status != 0 {
		t.Fatal(out)
	}
	var without []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "      > 0x") && !strings.HasPrefix(line, "        0x") {
			without = append(without, line)
		}
	}
	if d := cmp.Diff(plain, strings.Join(without, "")); d != "" {
		t.Errorf("besides code (-without +with):\n%s", d)
	}
	mustSay(t, out, "      > 0x000000000040193c <serve+0xc>   e8 4f ff ff ff  callq 0x401890\n        0x0000000000401941 <serve+0x11>  8b 54 24 0c     mov 0xc(%rsp),%edx\n")
	one, _, _ := unwindd(t, "stack", "--code", "3", "--no-fold", serverCore)
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "      > 0x") && !strings.Contains(one, line) {
			t.Errorf("--no-fold does not have %s", line)
		}
	}
}

// TestCodeOfWaves: what is known without a disassembler, and the text of one by the flag
// and by the configuration.
func TestCodeOfWaves(t *testing.T) {
	out, _, status := unwindd(t, "stack", "--code", "5", "--thread", "w2", mixedCapture)
	if status != 0 {
		t.Fatal(out)
	}
	mustSay(t, out, "      > 0x00007f42001016e0 <compare_sides+0x5c>  08 1e 9e be              .long 0xbe9e1e08  // calls the address in s[8:9], writes s[30:31]\n")
	mustSay(t, out, "<measure+0x44>  00 00 51 dc 00 00 00 04  .long 0xdc510000, 0x04000000  // writes v4\n")

	mc, objdump := oracle.Tool(t, "llvm-mc-22"), oracle.Tool(t, "llvm-objdump-22")
	config := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(config, []byte("disassembler = "+strconv.Quote(mc)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--disassembler", mc}, {"--disassembler", objdump}, {"--config", config}, {"--disassembler", objdump, "--in-process"}} {
		out, _, _ := unwindd(t, append([]string{"stack", "--code", "5", mixedCapture}, args...)...)
		mustSay(t, out, "      > 0x00007f42001016e0 <compare_sides+0x5c>  08 1e 9e be              s_swappc_b64 s[30:31], s[8:9]\n")
		mustSay(t, out, "\n2 threads: w2 w3\n")
		if strings.Contains(out, ".long") || strings.Contains(out, "problem:") {
			t.Errorf("%v:\n%s", args, out)
		}
	}
	r := stackJSON(t, "--code", "3", "--disassembler", mc, mixedCapture)
	for _, th := range r.Threads {
		for _, f := range th.Frames {
			if f.Code == nil {
				continue
			}
			for _, l := range *f.Code {
				if strings.HasPrefix(l.Text, ".") {
					t.Errorf("frame %s: %s", f.PC, l.Text)
				}
				if _, err := hex.DecodeString(l.Bytes); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestCodeOfBadDisassembler: it costs its texts, and one sentence, in text and in JSON.
func TestCodeOfBadDisassembler(t *testing.T) {
	path := filepath.Join(t.TempDir(), "llvm-mc")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nkill -SEGV $$\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain, _, _ := unwindd(t, "stack", "--code", "3", mixedCapture)
	out, said, status := unwindd(t, "stack", "--code", "3", "--disassembler", path, mixedCapture)
	problem := "disassembler " + path + ": was killed by signal 11 (segmentation fault); instructions have the text of the architecture's decoder"
	if status != 0 || strings.Replace(out, "problem: "+problem+"\n", "", 1) != plain {
		t.Errorf("status %d: %s\n%s", status, said, cmp.Diff(plain, out))
	}
	r := stackJSON(t, "--code", "3", "--disassembler", path, mixedCapture)
	if d := cmp.Diff([]string{problem}, r.Target.Problems); d != "" {
		t.Errorf("problems (-want +got): %s", d)
	}
}

// TestCodeOfGen: Intel's code, as far as it is read.
func TestCodeOfGen(t *testing.T) {
	out, _, status := unwindd(t, "stack", "--code", "6", "--thread", "g0", "../../examples/gen/gen.snapshot")
	if status != 0 {
		t.Fatal(out)
	}
	mustSay(t, out, "// mov, compacted\n")
	mustSay(t, out, "// calls 0x140290, writes from byte 0 of r125 on\n")
}

func TestWrongCodeFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--code", "0"}, "--code 0: expected 1 to 1000"},
		{[]string{"--code", "-3"}, "--code -3: expected 1 to 1000"},
		{[]string{"--code", "1001"}, "--code 1001: expected 1 to 1000"},
		{[]string{"--disassembler", "/usr/bin/llvm-mc"}, "--disassembler /usr/bin/llvm-mc: expected --code N too"},
	} {
		if _, said, status := unwindd(t, append([]string{"stack", serverCore}, c.args...)...); status != exitUsage || !strings.Contains(said, c.want) {
			t.Errorf("%v: status %d\n%s", c.args, status, said)
		}
	}
}

// TestCodeOfManyStacks: the code of more stacks than are asked for together.
func TestCodeOfManyStacks(t *testing.T) {
	oracle.All(t)
	long(t)
	const threads, count = 1000, 60
	type member map[string]any
	var list []member
	for i := range threads {
		list = append(list, member{"id": fmt.Sprint(i), "arch": "x86_64", "registers": member{"rip": fmt.Sprintf("%#x", 0x1000+i)}})
	}
	document, err := json.Marshal(member{
		"format_version": 1, "threads": list, "modules": []member{},
		"memory": []member{{"file": "memory/0.bin", "space": "global", "address": "0x1000"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := archive(t, map[string][]byte{"snapshot.json": document, "memory/0.bin": bytes.Repeat([]byte{0x90}, threads+2*count)})
	for _, c := range []struct {
		args []string
		mark string
	}{{nil, "      > 0x%016x  90"}, {[]string{"--no-fold"}, "      > 0x%016x  90"}, {[]string{"--format", "json"}, `"pc": "0x%x",` + "\n       \"bytes\": \"90\",\n       \"text\": \"nop\",\n       \"current\": true"}} {
		out, said, status := unwindd(t, append([]string{"stack", path, "--code", fmt.Sprint(count)}, c.args...)...)
		if status != 0 {
			t.Fatal(said)
		}
		at := 0
		for i := range threads { // in the target's order
			mark := fmt.Sprintf(c.mark, 0x1000+i)
			next := strings.Index(out[at:], mark)
			if next < 0 {
				t.Fatalf("%v: no %q behind the one before", c.args, mark)
			}
			at += next + len(mark)
		}
	}
}
