// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestSubmitTakesWhatStackTakes has the same targets walked by the command, and by a worker that
// has none of this machine's files.
func TestSubmitTakesWhatStackTakes(t *testing.T) {
	oracle.Tools(t, "gzip", "gcc")
	dir, work := fleetDir(t), fleetFiles(t)
	startWorker(t, dir, "--queue-listen", "localhost:0", "--workers", "1", "--sysroot", t.TempDir())
	root := t.TempDir()
	oracle.With{Dir: work}.Run(t, "gzip", "-k", "core")
	for _, c := range []struct {
		args  []string
		stdin string // a file
	}{
		{[]string{"core.gz", "server"}, ""},
		{[]string{"./server", "core"}, ""},
		{[]string{"-", "--exe", "server"}, "core"},
		{[]string{"-"}, "core.gz"},
		{[]string{"core", "--module", "server=server"}, ""},
	} {
		common := append(c.args, "--crashed", "--top", "3", "--sysroot", root)
		want := submitted(t, dir, work, c.stdin, append([]string{"stack"}, common...))
		got := submitted(t, dir, work, c.stdin, append([]string{"submit", "--wait", "--again"}, common...))
		if withoutPlaces(got) != withoutPlaces(want) || !strings.Contains(got, "#0") {
			t.Errorf("%q:\n%s\nexpected\n%s", c.args, got, want)
		}
	}
	if err := os.Mkdir(filepath.Join(work, "crashes"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"core", "crash.dmp", "server"} {
		if err := os.Rename(filepath.Join(work, name), filepath.Join(work, "crashes", name)); err != nil {
			t.Fatal(err)
		}
	}
	list := strings.Fields(submitted(t, dir, work, "", []string{"submit", "--again", "crashes"}))
	if len(list) != 6 || list[1] != "queued" || list[2] != "crashes/core" || list[5] != "crashes/crash.dmp" {
		t.Errorf("a folder: %q", list)
	}
	pid := waiting(t)
	if got := submitted(t, dir, work, "", []string{"submit", "--wait", pid}); !strings.HasPrefix(got, "snapshot "+pid+".snapshot") || !strings.Contains(got, "wait_inner") {
		t.Errorf("a living process: %s", got)
	}
}

// submitted runs a command of a folder's fleet, and returns its output.
func submitted(t *testing.T, dir, work, stdin string, args []string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...) //nolint:gosec // this executable
	var stdout, stderr bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = work, fleetEnvironment(dir), &stdout, &stderr
	if stdin != "" {
		file, err := os.Open(filepath.Join(work, stdin))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		c.Stdin = file
	}
	if err := c.Run(); err != nil {
		t.Errorf("%q: %v, %s", args, err, stderr.String())
	}
	return stdout.String()
}

func TestSubmitRefusesWhatStackRefuses(t *testing.T) {
	exe := filepath.Join(crashDir, "server")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-", "-"}, "standard input is one target"},
		{[]string{exe, exe}, "expected one, and its targets"},
		{[]string{t.TempDir()}, "no file is in the folder"},
		{[]string{"core", "--exe", "/none"}, "/none"},
	} {
		_, stack, status := unwindd(t, append([]string{"stack"}, c.args...)...)
		_, said, submit := unwindd(t, append([]string{"submit"}, c.args...)...)
		if said != strings.ReplaceAll(stack, "unwindd stack", "unwindd submit") || status != submit || !strings.Contains(said, c.says) {
			t.Errorf("%q: status %d, %s\nexpected status %d, %s", c.args, submit, said, status, stack)
		}
	}
}
