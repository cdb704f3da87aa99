// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnnotateSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
		exit int
	}{
		{[]string{wordsRecording, "--annotate", "insrt"}, "no function insrt was sampled or called; near are: insert(Node*, unsigned int)", 1},
		{[]string{wordsRecording, "--annotate", "nothing_like_this"}, "no function nothing_like_this was sampled or called", 1},
		{[]string{wordsRecording, "--annotate", "insert", "--symbols=false"}, "expected neither --http nor --symbols=false", 2},
		{[]string{wordsRecording, "--annotate", "insert", "--format", "folded"}, "--annotate writes text or JSON", 2},
		{[]string{wordsRecording, "--disassembler", "x"}, "expected --annotate FUNCTION too", 2},
	} {
		cmd := command(append([]string{"profile", "--in-process"}, c.args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != c.exit || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%q: exit status %d, %s", c.args, code, &stderr)
		}
	}
}

// TestAnnotatedKernelsOfCubins has samples of a kernel by its section, of which the file has addresses
// from 0 on: inlined calls, and the PTX of each instruction.
func TestAnnotatedKernelsOfCubins(t *testing.T) {
	cubin, err := filepath.Abs("../../engine/internal/symbol/dwarf/testdata/cubin/sum75.cubin")
	if err != nil {
		t.Fatal(err)
	}
	samples := filepath.Join(t.TempDir(), "samples.jsonl")
	text := `{"record":"format","format_version":1,"clock":"CLOCK_MONOTONIC"}
{"record":"module","id":"1","path":"` + cubin + `","arch":"nvidia","processor":"sm_75","segments":[{"section":".text._Z5oftenPii","address":"0x0","size":"0x1000","start":"0x7f0000001000"}]}
{"record":"sample","event":"stalls","module":1,"module_offset":"0x60","weight":7}
{"record":"sample","event":"stalls","pc":"0x7f0000001450","weight":3}
`
	if err := os.WriteFile(samples, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := command("profile", "--gpu", samples, "--annotate", "often").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"7  100.0%    0x60", "sum.cuh:1 square  PTX 239: mad.lo.s32 %r3, %r2, %r2, 1;\n", "sum.cuh:2 clamp<int>  PTX 236: setp.lt.s32 %p2, %r2, %r1;\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, err = command("profile", "--gpu", samples, "--annotate", "often", "--format", "json").Output()
	if err != nil || !strings.Contains(string(out), `"ptx_line":239`) && !strings.Contains(string(out), `"ptx_line": 239`) {
		t.Errorf("%v: no line of PTX in the JSON %.3000s", err, out)
	}
}
