// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// scriptRuntime is a language runtime that executes the function serve of the crash example.
// What is wrong with it is its name; "script" is sound.
type scriptRuntime struct {
	sdk.RuntimeBase
	name string
}

// Describe implements sdk.Runtime.
func (s scriptRuntime) Describe(context.Context) (*sdk.RuntimeDescription, error) {
	d := &sdk.RuntimeDescription{
		Name: s.name, Version: "7", Recognises: []sdk.RuntimeRecogniser{{Section: ".text", Symbol: "serve"}, {BuildID: []byte{0xab, 0xcd}}},
		Symbols:   []string{"serve", "no such symbol"},
		Types:     []sdk.RuntimeType{{Unit: "server.c", Name: "request", Members: []string{"line", "headers"}}},
		Constants: []sdk.RuntimeConstants{{Prefix: "STATE_"}}, ThreadKind: "task",
	}
	if s.name == "absent" {
		d.Recognises[0].Symbol = "no such symbol"
	}
	return d, nil
}

// OpenRuntime implements sdk.Runtime.
func (s scriptRuntime) OpenRuntime(_ context.Context, _ sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	serve := req.Symbols[0]
	a := &sdk.OpenRuntimeAnswer{Version: "script 2", Problems: []string{"one heap is lost"}}
	switch s.name {
	case "script", "wrong":
		a.HasFrames, a.HasThreads = true, true
		a.Code = []sdk.RuntimeCode{{Start: serve.Address, End: serve.Address + serve.Size, Name: "code heap"}}
	case "overlapping":
		a.Code = []sdk.RuntimeCode{{Start: 8, End: 16}, {Start: 15, End: 20}}
	case "elsewhere":
		a.Code = []sdk.RuntimeCode{{Start: serve.Address, End: serve.Address + 1<<47}}
	}
	return a, nil
}

// CodeRules implements sdk.Runtime.
func (s scriptRuntime) CodeRules(_ context.Context, _ sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
	a := &sdk.CodeRulesAnswer{}
	for _, pc := range req.PCs {
		r := sdk.CodeRules{Start: pc, End: pc + 1, Frames: []sdk.ManagedFrame{{Function: "Handler.compiled", Line: 9, Kind: sdk.Compiled}}}
		if s.name == "wrong" {
			r.Rows = []cfi.Row{{Start: pc, End: pc + 1, CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 9999}, ReturnAddress: 16}}
		}
		a.Code = append(a.Code, r)
	}
	return a, nil
}

// ManagedFrames implements sdk.Runtime.
func (s scriptRuntime) ManagedFrames(_ context.Context, _ sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	a := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
	for i, th := range req.Threads {
		for k, f := range th.Frames {
			if f.Function != "Handler.compiled" && f.Function != "serve" {
				continue
			}
			run := sdk.ManagedRun{First: uint32(k), Count: 1, Frames: []sdk.ManagedFrame{{Function: "Handler.serve", Line: 7, Kind: sdk.Interpreted}}} //nolint:gosec // small
			if s.name == "wrong" {
				run.Count = 1000
			}
			if req.Variables {
				run.Frames[0].Variables = []sdk.ManagedVariable{{Name: "self", Text: "<Handler>"}}
			}
			a.Stacks[i].Runs = append(a.Stacks[i].Runs, run)
		}
		a.Stacks[i].Problem = "half of it is lost"
	}
	return a, nil
}

// ManagedThreads implements sdk.Runtime.
func (s scriptRuntime) ManagedThreads(context.Context, sdk.RuntimeEngine, *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	a := &sdk.ManagedThreadsAnswer{Threads: []sdk.ManagedThread{{Number: 3, State: "waiting"}}}
	if s.name == "wrong" {
		a.Threads[0].Registers.Set(9999, make([]byte, 8))
	}
	return a, nil
}

// scripts makes a folder with plugins of scriptRuntime.
func scripts(t *testing.T, names ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range names {
		b, err := os.ReadFile(self)
		if err == nil {
			// What a plugin says of itself is cached by the hash of its file.
			err = os.WriteFile(filepath.Join(dir, sdk.RuntimePrefix+name), append(b, name...), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// serveAddress is where the function serve of the crash example is in its core.
func serveAddress(t *testing.T, dir string) string {
	t.Helper()
	out, errs, status := ran(t, "plugin", "call", "OpenRuntime", "../../examples/crash/server.core", "--plugin-dir", dir, "--runtime", "script", "--request")
	var call struct{ Request sdk.OpenRuntimeRequest }
	document := strings.Replace(out, `"BuildID": "`, `"-": "`, 1) // hex, which is no base64
	if err := json.Unmarshal([]byte(document), &call); status != 0 || err != nil || len(call.Request.Symbols) != 2 {
		t.Fatalf("status %d, %v:\n%s%s", status, err, out, errs)
	}
	return fmt.Sprintf("%#x", call.Request.Symbols[0].Address)
}

func TestPluginCallOfRuntimes(t *testing.T) {
	const core = "../../examples/crash/server.core"
	dirs := map[string]string{} // one for each plugin: all in a folder are hashed each time
	for _, name := range []string{"script", "wrong", "overlapping", "elsewhere", "absent"} {
		dirs[name] = scripts(t, name)
	}
	pc := serveAddress(t, dirs["script"])
	for _, c := range []struct {
		args   string
		want   string // in what is printed, to either
		status int
	}{
		{"Describe --runtime script", `"ThreadKind": "task"`, 0},
		{"Describe --runtime script", `"BuildID": "abcd"`, 0},
		{"Describe --runtime " + dirs["wrong"] + "/unwindd-runtime-wrong", `"Name": "wrong"`, 0},
		{"OpenRuntime " + core + " --runtime script", `"Name": "code heap"`, 0},
		{"OpenRuntime " + core + " server --runtime script", `"Version": "script 2"`, 0},
		{"OpenRuntime " + core + " libc --runtime script", "libc is no module with the language runtime script, expected /", 1},
		{"OpenRuntime " + core, `"Version": "script 2"`, 0},
		{"OpenRuntime " + core + " --runtime overlapping", `"End": 20`, 1},
		{"OpenRuntime " + core + " --runtime overlapping", "unwindd: OpenRuntimeAnswer.Code", 1},
		{"OpenRuntime " + core + " --runtime elsewhere", "is not used: it is in ", 1},
		{"OpenRuntime " + core + " --runtime absent", "no module has the language runtime absent: it recognises section .text symbol no such symbol, build ID abcd", 1},
		{"CodeRules " + core + " " + pc + " --runtime script", `"Function": "Handler.compiled"`, 0},
		{"CodeRules " + core + " " + pc + " 0x10 --runtime script", "has no Code with 0x10", 1},
		{"CodeRules " + core + " zz --runtime script", `"zz" is no address in hex`, 1},
		{"CodeRules " + core + " --runtime script", "expected a PC", 2},
		{"CodeRules " + core + " " + pc + " --runtime wrong", "9999", 1},
		{"ManagedFrames " + core + " --runtime script", `"Name": "self"`, 0},
		{"ManagedFrames " + core + " 5266 --runtime script --request", `"Function": "Handler.compiled"`, 0},
		{"ManagedFrames " + core + " 1 --runtime script", "no thread 1", 1},
		{"ManagedFrames " + core + " --runtime wrong", `"Count": 1000`, 1},
		{"ManagedFrames " + core + " --runtime elsewhere", "unwindd does not ask: what OpenRuntime answers about ", 1},
		{"ManagedFrames " + core + " --runtime overlapping", "ManagedFrames: OpenRuntime of /", 1},
		{"ManagedThreads " + core + " --runtime script", `"State": "waiting"`, 0},
		{"ManagedThreads " + core + " --runtime wrong", "9999", 1},
		{"ManagedThreads " + core + " --arch x86_64", "expected --runtime instead of --arch", 2},
		{"OpenObject " + core + " --runtime script", "expected --arch instead of --runtime", 2},
		{"Describe --runtime script --arch x86_64", "expected one of them", 2},
		{"Describe --runtime nothing", `no language runtime "nothing", expected one of go, cpython, hotspot, v8, ruby, php, script`, 1},
		{"Describe --runtime ./nothing", "expected an executable that is named unwindd-runtime-NAME", 1},
		{"Describe --arch x86_64 --request", `"Request": {}`, 0},
	} {
		_, name, _ := strings.Cut(c.args, "--runtime ")
		name, _, _ = strings.Cut(name, " ")
		dir := cmp.Or(dirs[name], dirs["script"])
		words := append([]string{"plugin", "call", "--plugin-dir", dir}, strings.Fields(c.args)...)
		out, errs, status := ran(t, words...)
		if status != c.status || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: status %d, expected %d and %q:\n%s%s", c.args, status, c.status, c.want, out, errs)
		}
	}
}

func TestPluginInfoOfRuntimes(t *testing.T) {
	dir := scripts(t, "script", "x86_64")
	out, errs, status := ran(t, "plugin", "info", "script", "--plugin-dir", dir)
	var lines []string
	for line := range strings.Lines(out) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	want := `language runtime script 7
origin ` + dir + `/unwindd-runtime-script
recognises section .text symbol serve, build ID abcd
threads task
symbol serve
symbol no such symbol
type request in server.c: line headers
constants STATE_*`
	if got := strings.Join(lines, "\n"); status != 0 || got != want {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	out, _, status = ran(t, "plugin", "info", "script", "--plugin-dir", dir, "--format", "json")
	var d sdk.RuntimeDescription
	if err := json.Unmarshal([]byte(out), &d); status != 0 || err != nil || d.ThreadKind != "task" || d.Feature != sdk.Feature {
		t.Errorf("status %d, %v: %s", status, err, out)
	}
	// One name may be of both.
	out, _, status = ran(t, "plugin", "info", "x86_64", "--plugin-dir", dir)
	if status != 0 || !strings.HasPrefix(out, "architecture") || !strings.Contains(out, "\nlanguage runtime ") {
		t.Errorf("status %d: %s", status, out)
	}
	var both struct {
		Architecture sdk.Description
		Runtime      sdk.RuntimeDescription
	}
	out, _, status = ran(t, "plugin", "info", "x86_64", "--plugin-dir", dir, "--format", "json")
	if err := json.Unmarshal([]byte(out), &both); status != 0 || err != nil || both.Architecture.PC != 16 || both.Runtime.Version != "7" {
		t.Errorf("status %d, %v: %s", status, err, out)
	}
	_, errs, status = ran(t, "plugin", "info", "nothing", "--plugin-dir", dir)
	if status != 1 || !strings.Contains(errs, `no language runtime "nothing", expected one of go, cpython, hotspot, v8, ruby, php, script, x86_64`) || !strings.Contains(errs, `architecture "nothing"`) {
		t.Errorf("status %d: %s", status, errs)
	}
}
