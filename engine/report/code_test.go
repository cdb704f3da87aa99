// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"archive/zip"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
)

const (
	serverCore   = "../../examples/crash/server.core"
	mixedCapture = "../../examples/mixed/mixed.snapshot"
	genSnapshot  = "../../examples/gen/gen.snapshot"
)

// code asks for instructions of every frame.
func code(count uint32) func(*enginetest.Ask) {
	return func(a *enginetest.Ask) { a.Stack.Code = count }
}

// disassembled asks for the text of a disassembler, which this test binary confines.
func disassembled(t *testing.T, program string) func(*enginetest.Ask) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(a *enginetest.Ask) { a.Engine.Disassembler, a.Engine.Plugins.Self = program, self }
}

// mustSay fails unless every text is in the output.
func mustSay(t *testing.T, printed string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(printed, text) {
			t.Errorf("%q is not said in:\n%s", text, printed)
		}
	}
}

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
	for _, m := range listedCode.FindAllStringSubmatch(oracle.Run(t, "objdump", "-d", "-w", "../../examples/crash/server"), -1) {
		listed[hexOf(t, m[1])] = strings.ReplaceAll(m[2], " ", "") + " " + m[3]
	}
	frames := 0
	for _, count := range []uint32{1, 4, 7} {
		for _, th := range enginetest.Report(t, serverCore, code(count)).Threads {
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
				checkCodeLines(t, f, isTop, int(count), listed)
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
	out, plain := enginetest.Text(t, serverCore, code(3)), enginetest.Text(t, serverCore)
	var without []string
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "      > 0x") && !strings.HasPrefix(line, "        0x") {
			without = append(without, line)
		}
	}
	if d := cmp.Diff(plain, strings.Join(without, "")); d != "" {
		t.Errorf("besides code (-without +with):\n%s", d)
	}
	mustSay(t, out, "      > 0x000000000040193c <+0xc>   e8 4f ff ff ff  callq 0x401890\n        0x0000000000401941 <+0x11>  8b 54 24 0c     mov 0xc(%rsp),%edx\n")
	one := enginetest.Text(t, serverCore, code(3), func(a *enginetest.Ask) { a.Stack.NoFold = true })
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "      > 0x") && !strings.Contains(one, line) {
			t.Errorf("--no-fold does not have %s", line)
		}
	}
}

// TestCodeOfWaves: the facts without a disassembler, and the text of one.
func TestCodeOfWaves(t *testing.T) {
	out := enginetest.Text(t, mixedCapture, code(5), func(a *enginetest.Ask) { a.Stack.Thread = "w2" })
	mustSay(t, out, "      > 0x00007f42001016e0 <+0x5c>  08 1e 9e be              .long 0xbe9e1e08  // calls the address in s[8:9], writes s[30:31]\n")
	mustSay(t, out, "<+0x44>  00 00 51 dc 00 00 00 04  .long 0xdc510000, 0x04000000  // writes v4\n")

	for _, tool := range []string{"llvm-mc-22", "llvm-objdump-22"} {
		program := oracle.Tool(t, tool)
		out := enginetest.Text(t, mixedCapture, code(5), disassembled(t, program))
		mustSay(t, out, "      > 0x00007f42001016e0 <+0x5c>  08 1e 9e be              s_swappc_b64 s[30:31], s[8:9]\n")
		mustSay(t, out, "\n2 threads: w2 w3\n")
		if strings.Contains(out, ".long") || strings.Contains(out, "problem:") {
			t.Errorf("%s:\n%s", tool, out)
		}
	}
	r := enginetest.Report(t, mixedCapture, code(3), disassembled(t, oracle.Tool(t, "llvm-mc-22")))
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
	plain, out := enginetest.Text(t, mixedCapture, code(3)), enginetest.Text(t, mixedCapture, code(3), disassembled(t, path))
	problem := "disassembler " + path + ": was killed by signal 11 (segmentation fault); instructions have the text of the architecture's decoder"
	if d := cmp.Diff(plain, strings.Replace(out, "problem: "+problem+"\n", "", 1)); d != "" {
		t.Error(d)
	}
	r := enginetest.Report(t, mixedCapture, code(3), disassembled(t, path))
	if d := cmp.Diff([]string{problem}, r.Target.Problems); d != "" {
		t.Errorf("problems (-want +got): %s", d)
	}
}

// TestCodeOfGen: Intel's code, as far as it is read.
func TestCodeOfGen(t *testing.T) {
	out := enginetest.Text(t, genSnapshot, code(6), func(a *enginetest.Ask) { a.Stack.Thread = "g0" })
	mustSay(t, out, "// mov, compacted\n", "// calls 0x140290, writes from byte 0 of r125 on\n")
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
	path := filepath.Join(t.TempDir(), "many.snapshot")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, content := range map[string][]byte{"snapshot.json": document, "memory/0.bin": bytes.Repeat([]byte{0x90}, threads+2*count)} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set  func(*enginetest.Ask)
		mark string
	}{
		{func(*enginetest.Ask) {}, "      > 0x%016x  90"},
		{func(a *enginetest.Ask) { a.Stack.NoFold = true }, "      > 0x%016x  90"},
		{func(a *enginetest.Ask) { a.Stack.Format = "json" }, `"pc": "0x%x",` + "\n       \"bytes\": \"90\",\n       \"text\": \"nop\",\n       \"current\": true"},
	} {
		out := enginetest.Text(t, path, code(count), c.set)
		at := 0
		for i := range threads { // in the target's order
			mark := fmt.Sprintf(c.mark, 0x1000+i)
			next := strings.Index(out[at:], mark)
			if next < 0 {
				t.Fatalf("no %q behind the one before", mark)
			}
			at += next + len(mark)
		}
	}
}
