// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

func TestVersionSaysWhichBuildThisIs(t *testing.T) {
	out, _, status := unwindd(t, "version", "--format", "json")
	var v buildFacts
	if err := json.Unmarshal([]byte(out), &v); err != nil || status != exitDone {
		t.Fatalf("status %d, %v: %s", status, err, out)
	}
	if v.Go != runtime.Version() || v.Platform != runtime.GOOS+"/"+runtime.GOARCH || v.Plugins < 1 || v.Stacks < 1 || v.Snapshots < 1 {
		t.Errorf("%s", out)
	}
	line, _, status := unwindd(t, "--version")
	if status != exitDone || line != "unwindd "+v.Version+"\n" {
		t.Errorf("--version: status %d, %q, version says %q", status, line, v.Version)
	}
	text, _, _ := unwindd(t, "version")
	mustSay(t, text, "unwindd         "+v.Version+"\n", "built by        "+v.Go+"\n", "JSON of stacks  version 1\n")
	stacks, _, _ := unwindd(t, "stack", "--format", "json", serverCore)
	if !strings.HasPrefix(stacks, "{\n \"version\": 1,\n") {
		t.Errorf("the JSON of stack begins with %.40q", stacks)
	}
}

// TestVersionOfBuilds builds unwindd in a repository and outside one, and asks each build.
func TestVersionOfBuilds(t *testing.T) {
	long(t)
	oracle.Tools(t, "git")
	t.Parallel()
	dir := t.TempDir()
	build := func(name string, flags ...string) (version string, v buildFacts) {
		t.Helper()
		exe := filepath.Join(dir, name)
		oracle.With{Dir: "../.."}.Run(t, "go", append(append([]string{"build", "-o", exe}, flags...), "./cmd/unwindd")...)
		if err := json.Unmarshal([]byte(oracle.Run(t, exe, "version", "--format", "json")), &v); err != nil {
			t.Fatal(err)
		}
		return oracle.Run(t, exe, "--version"), v
	}
	line, v := build("plain", "-buildvcs=false")
	if line != "unwindd devel\n" || v.Commit != "" || v.CommitTime != "" {
		t.Errorf("nobody said which build it is, and it says %q, %+v", line, v)
	}
	const to = "-X github.com/unwindd/unwindd/internal/version."
	line, v = build("told", "-buildvcs=false", "-ldflags", to+"version=v9.8.7 "+to+"commit=0123456789 "+to+"date=2026-11-23T23:00:00+01:00")
	if line != "unwindd v9.8.7\n" || v.Commit != "0123456789" || v.CommitTime != "2026-11-23T22:00:00Z" {
		t.Errorf("it was told, and says %q, %+v", line, v)
	}
	if info, err := os.Stat("../../.git"); err != nil || !info.IsDir() {
		return // the go command stamps nothing in linked work trees
	}
	line, v = build("stamped", "-buildvcs=true")
	head := strings.TrimSpace(oracle.With{Dir: "../.."}.Run(t, "git", "rev-parse", "HEAD"))
	if v.Commit != head || !regexp.MustCompile(`^unwindd v\d+\.\d+\.\d+`).MatchString(line) {
		t.Errorf("it says %q, %+v, and the commit is %s", line, v, head)
	}
}
