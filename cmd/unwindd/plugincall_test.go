// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

// ran runs the command and returns what it wrote and its status.
func ran(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if cmd.Run() != nil {
		status = cmd.ProcessState.ExitCode()
	}
	return out.String(), errs.String(), status
}

func TestPluginCall(t *testing.T) {
	const server, serverCore, gpuCore = "../../examples/crash/server", "../../examples/crash/server.core", "../../examples/rocm-core/crash.core"
	for _, c := range []struct {
		args   string
		want   string // in what is printed, to either
		status int
	}{
		{"Describe --arch x86_64", `"Name": "x86_64"`, 0},
		{"OpenObject " + server, `"Name": "_start"`, 0},
		{"FrameRules " + server + " main", `"ReturnAddress": 16`, 0},
		{"FrameRules " + server + " main --in-process", `"ReturnAddress": 16`, 0},
		{"ClassifyReturn " + server + " main", `"Classes"`, 0},
		{"Disassemble " + server + " main", `"Instructions"`, 0},
		{"Disassemble " + server + " nowhere", "neither a function of it nor an address", 1},
		{"Disassemble " + server + " 0x1", "is in no function of it", 1},
		{"Disassemble " + server + " main main", "one argument too many", 2},
		{"FrameRules " + server, "expected a FUNCTION or an ADDRESS", 2},
		{"OpenObject", "expected FILE", 2},
		{"Describe", "expected --arch or --runtime", 2},
		{"Walk", "expected BindThreads, ClassifyReturn, CodeRules, Describe, Disassemble, FrameRules, ManagedFrames, ManagedThreads, OpenObject, OpenRuntime, OpenTarget, Translate", 2},
		{"OpenTarget " + gpuCore, `"Kind": "rocm-core"`, 0},
		{"OpenTarget " + gpuCore + " AMDGPU --arch amdgpu", `"Kind": "rocm-core"`, 0},
		{"OpenTarget " + gpuCore + " NVIDIA", `no notes of "NVIDIA" for architecture amdgpu, expected AMDGPU`, 1},
		{"OpenTarget " + serverCore, "it has no notes of which architecture x86_64 says", 1},
		{"OpenTarget", "expected TARGET, a core", 2},
		{"OpenTarget " + server, "is an executable: give the core", 1},
		{"BindThreads " + serverCore + " 5267", `"Lanes": 1`, 0},
		{"BindThreads " + serverCore + " --in-process", `"PC": `, 0},
		{"BindThreads " + gpuCore, `"Maps": [`, 0},
		{"BindThreads " + gpuCore + " --arch x86_64", `"Lanes": 1`, 0},
		{"BindThreads " + serverCore + " 1", "no thread 1 of architecture x86_64 with registers", 1},
		{"Translate " + serverCore + " 5267 none 0x10", "unwindd: Translate: the architecture does not implement this call", 1},
		{"Translate " + serverCore + " 5267 7 zz", `"zz" is no address in hex`, 1},
		{"Translate " + serverCore + " 5267 nowhere 0", `"nowhere" is neither the name nor the number of an address space`, 1},
		{"Translate " + serverCore + " 5267 0 0 x", `"x" is no lane`, 1},
		{"Translate " + serverCore + " 5267 none", "expected an ADDRESS in it", 2},
		{"Describe --arch ./nothing", "no such file", 1},
		{"Describe --arch x86_64 --plugin-log loud", "expected trace, debug, info, warn or error", 2},
	} {
		out, errs, status := ran(t, append([]string{"plugin", "call"}, strings.Fields(c.args)...)...)
		if status != c.status || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: status %d, expected %d and %q:\n%s%s", c.args, status, c.status, c.want, out, errs)
		}
	}
}

func TestPluginVerifyHasAStatus(t *testing.T) {
	if out, errs, status := ran(t, "plugin", "verify", "/bin/true", "--format", "json"); status != 1 || !strings.Contains(out, `"passed": false`) || !strings.Contains(errs, "did not pass") {
		t.Errorf("status %d: %s%s", status, out, errs)
	}
	if _, errs, status := ran(t, "plugin", "verify"); status != 2 {
		t.Errorf("status %d: %s", status, errs)
	}
}
