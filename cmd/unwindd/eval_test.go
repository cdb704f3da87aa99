// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
)

// The JSON has what failed, too.
func TestEval(t *testing.T) {
	stdout, stderr, status := unwindd(t, "eval", "--arch", "x86_64", "--expr", "bregx rbp, -8; deref", "--reg", "RBP=1008", "--mem", "global:0x1000=2a00000000000000")
	if strings.TrimSpace(stdout) != "value generic 0x2a" || stderr != "" || status != exitDone {
		t.Errorf("status %d: %q, %s", status, stdout, stderr)
	}
	stdout, stderr, status = unwindd(t, "eval", "--format", "json", "--arch", "x86_64", "--expr", "lit1; plus")
	var failed report.Evaluation
	if err := json.Unmarshal([]byte(stdout), &failed); err != nil || status != exitInput || failed.Error == nil || !strings.Contains(stderr, "DW_OP_plus") {
		t.Errorf("status %d: %v, %s, %s", status, err, stdout, stderr)
	}
}

func TestEvalUsage(t *testing.T) {
	server := filepath.Join(t.TempDir(), "server")
	copyFile(t, "server", server, nil)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--expr", "lit1"}, "--arch is missing"},
		{[]string{"--arch", "x86_64", "--expr", "", "--kind", "thing"}, "--kind thing"},
		{[]string{"--arch", "x86_64", "--expr", "", "--unit", server}, "expected FILE:OFFSET"},
		{[]string{"--arch", "x86_64", "--expr", "", "--unit", server + ":0", "-o", server}, "written over"},
		{[]string{"--snapshot", serverCore, "--var", "batch["}, "--var"},
		{[]string{"--snapshot", serverCore, "--var", "batch", "--lane", "-2"}, "--lane -2: expected 0 to 2147483647"},
		{[]string{"--snapshot", serverCore, "--var", "batch", "--frame", "-1"}, "--frame -1: expected 0 or more"},
		{[]string{"--snapshot", serverCore, "--var", "batch", "--depth", "0"}, "--depth 0: expected 1 to 64"},
		{[]string{"--arch", "x86_64", "--expr", "", "--iteration", "-1"}, "--iteration -1: expected 0 or more"},
	} {
		if stdout, stderr, status := unwindd(t, append([]string{"eval"}, c.args...)...); status != exitUsage || stdout != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("eval %v: status %d, %q, %s", c.args, status, stdout, stderr)
		}
	}
}
