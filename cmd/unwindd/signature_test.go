// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
)

const serverSignature = "unwindd-2:5cfbecc3e9546971 content_length | read_body | serve | by_name | msort_with_tmp\n"

func TestSignatureIsALine(t *testing.T) {
	out, _, status := unwindd(t, "stack", "--signature", serverCore)
	if status != 0 || out != serverSignature {
		t.Errorf("status %d, printed\n%s", status, out)
	}
	out, _, status = unwindd(t, "stack", "--signature", serverCore, mixed)
	if status != 0 || out != serverCore+": "+serverSignature+mixed+": unwindd-2:7b0cc5d98aee5d20 repair | grade\n" {
		t.Errorf("status %d, printed\n%s", status, out)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"../../examples/gen/gen.snapshot"}, 1, "expected --thread ID too"},
		{[]string{"--thread", "9", serverCore}, 1, "no thread 9"},
		{[]string{"--top", "3", serverCore}, 2, "--top: --signature has no place for it"},
		{[]string{"--format", "breakpad", serverCore}, 2, "--format breakpad"},
		{[]string{"--signature-version", "3", serverCore}, 2, "--signature-version 3: expected 1 to 2"},
		{[]string{"--signature-version", "-1", serverCore}, 2, "expected 1 to 2"},
	} {
		_, stderr, status := unwindd(t, append([]string{"stack", "--signature"}, c.args...)...)
		if status != c.status || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: status %d, %s", c.args, status, stderr)
		}
	}
	out, _, status = unwindd(t, "stack", "--signature", "--signature-version", "1", serverCore)
	if status != 0 || out != "unwindd-1:838e1f3e3c2c6ca8 content_length | read_body | serve | by_name | msort_with_tmp\n" {
		t.Errorf("status %d, printed\n%s", status, out)
	}
	// A thread that did not crash, where it is asked for.
	out, _, status = unwindd(t, "stack", "--signature", "--thread", "5267", serverCore)
	if status != 0 || !strings.HasPrefix(out, "unwindd-2:") || out == serverSignature {
		t.Errorf("status %d, printed\n%s", status, out)
	}
}

// TestSignatureInJSON compares the JSON of a signature with that of the stack.
func TestSignatureInJSON(t *testing.T) {
	out, _, _ := unwindd(t, "stack", "--signature", "--format", "json", serverCore)
	var one report.Signature
	if err := json.Unmarshal([]byte(out), &one); err != nil {
		t.Fatal(err)
	}
	if one.Path != serverCore || one.Version != 2 || one.Thread != "5266" || len(one.Frames) != 5 || !strings.HasPrefix(serverSignature, one.Signature+" ") {
		t.Errorf("%+v", one)
	}
	for _, args := range [][]string{nil, {"--top", "2"}, {"--max-frames", "0"}} {
		for _, th := range stackJSON(t, append([]string{serverCore}, args...)...).Threads {
			if th.Crashed != (th.Signature != nil) || th.Crashed && (th.Signature.Hash != one.Hash || len(th.Signature.Frames) != 5) {
				t.Errorf("%v: thread %s: %+v", args, th.ID, th.Signature)
			}
		}
	}
	for _, th := range stackJSON(t, serverCore, "--no-inlines").Threads {
		if th.Signature != nil {
			t.Errorf("without inlined calls: %+v", th.Signature)
		}
	}
}
