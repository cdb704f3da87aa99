// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// startMaker starts a program that made code and registered it for debuggers, and waits in
// it. flags are for the compiler of the code.
func startMaker(t *testing.T, environment []string, flags ...string) (pid int) {
	t.Helper()
	oracle.Tools(t, "gcc")
	dir := t.TempDir()
	source := func(name string) string { return filepath.Join("testdata", "registered", name) }
	exe := filepath.Join(dir, "maker")
	oracle.Run(t, "gcc", "-O1", "-w", "-rdynamic", "-s", source("maker.c"), "-o", exe)
	var files []string
	for _, name := range []string{"other.o", "code.o"} {
		files = append(files, filepath.Join(dir, name))
		oracle.Run(t, "gcc", append([]string{"-O1", "-g", "-fno-optimize-sibling-calls", "-fno-ipa-ra", "-c", source("code.c"), "-o", files[len(files)-1]}, flags...)...)
	}
	cmd := exec.Command(exe, files...)
	cmd.Env = append(os.Environ(), environment...)
	return startReady(t, cmd)
}

// startReady starts a program, which is killed at the end of the test, and waits until it says that it is ready.
func startReady(t *testing.T, cmd *exec.Cmd) (pid int) {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("%s said %q, %v", cmd.Path, line, err)
	}
	return cmd.Process.Pid
}

// madeFrames are the frames of the first stack that lie in code that was registered.
func madeFrames(t *testing.T, own *engine.Target) (list []string) {
	t.Helper()
	for s := range own.Stacks(t.Context()) {
		for i := range s.Frames {
			f := &s.Frames[i]
			if m := f.Module; m == nil || !strings.HasPrefix(m.Path, "[registered at ") {
				continue
			}
			for _, name := range f.Symbols {
				list = append(list, name.Function+":"+strconv.Itoa(name.Line)+" by "+string(f.FoundBy))
			}
		}
		break
	}
	return list
}

func TestCodeThatProgramsRegistered(t *testing.T) {
	for name, c := range map[string]struct {
		flags []string
		want  []string
	}{
		"with debug information": {nil, []string{"deep:8 by cfi", "deep:9 by cfi", "deep:9 by cfi", "entry:12 by cfi"}},
		"without":                {[]string{"-g0"}, []string{"deep:0 by cfi", "deep:0 by cfi", "deep:0 by cfi", "entry:0 by cfi"}},
	} {
		t.Run(name, func(t *testing.T) {
			pid := startMaker(t, nil, c.flags...)
			e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			living, err := e.OpenProcess(pid)
			if err != nil {
				t.Fatal(err)
			}
			check := func(what string, own *engine.Target) {
				t.Helper()
				if diff := cmp.Diff(c.want, madeFrames(t, own)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
				if problems := own.Problems(); slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, "registered") }) {
					t.Errorf("%s: problems %q", what, problems)
				}
			}
			check("living", living)
			kept, err := living.Snapshot(t.Context(), engine.SnapshotOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := kept.Write(&b); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "snapshot")
			if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			snapshot, err := e.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			check("snapshot", snapshot)
			if _, err := exec.LookPath("gcore"); err != nil {
				return
			}
			core := filepath.Join(t.TempDir(), "core")
			oracle.Run(t, "gcore", "-o", core, strconv.Itoa(pid))
			dead, err := e.Open(core + "." + strconv.Itoa(pid))
			if err != nil {
				t.Fatal(err)
			}
			check("core", dead)
		})
	}
}

func TestCodeOfLivingProcessesThatAMapNames(t *testing.T) {
	pid := startMaker(t, []string{"MAP=1"}, "-fno-omit-frame-pointer")
	name := fmt.Sprintf("/tmp/perf-%d.map", pid)
	t.Cleanup(func() { _ = os.Remove(name) })
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	named := func() (n int) {
		living, err := e.OpenProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		defer living.Close()
		for s := range living.Stacks(t.Context()) {
			for i := range s.Frames {
				f := &s.Frames[i]
				if len(f.Symbols) == 1 && f.Symbols[0].Function == "made code" && f.Module == nil {
					n++
				}
			}
		}
		return n
	}
	if n := named(); n != 4 {
		t.Errorf("%d frames are named by the map, expected 4", n)
	}
	if os.Geteuid() != 0 {
		return
	}
	// A file of somebody else's is not believed.
	if err := os.Chown(name, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if n := named(); n != 0 {
		t.Errorf("%d frames are named by somebody else's map", n)
	}
}
