// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
	"github.com/unwindd/unwindd/internal/gcn"
	"github.com/unwindd/unwindd/internal/oracle"
)

// corpusWaves are waves of a kernel of the corpus.
func corpusWaves(t testing.TB, path string, most int) *stoppedWaves {
	t.Helper()
	path = oracle.Beside(t, "corpus/"+path)[0]
	o := gcn.Open(t, gcn.ProcessorOf(t, filepath.Base(path)), path)
	return stopGCN(t, o, o.Kernels[0], 1, most)
}

// TestCodeObjectsOfCores opens cores that name the code of their waves in all ways that the
// runtime has: the file, a part of a file, memory; and where it is gone or another
// one, the code is what was loaded.
func TestCodeObjectsOfCores(t *testing.T) {
	gcn.Need(t)
	w := corpusWaves(t, "amdgpu/O2/amd_k.gfx90a.co", 6)
	image, err := os.ReadFile(w.object.Path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(oracle.Beside(t, "corpus/amdgpu/O0/amd_k.gfx90a.co")[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, parts ...[]byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, bytes.Join(parts, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file://" + path
	}
	fat := file("fat binary", make([]byte, 4096), other, make([]byte, 4096-len(other)%4096), image, other)
	at := 4096 + len(other) + 4096 - len(other)%4096
	rebuilt := "it is read from the core's memory"
	for _, c := range []struct {
		what, uri string
		isNamed   bool   // functions have names of the symbol table
		problem   string // of the module
	}{
		{"the file", "file://" + w.object.Path, true, ""},
		{"the file's image in memory", "", true, ""},
		{"a part of a file", fmt.Sprintf("%s#offset=%d&size=%d", strings.ReplaceAll(fat, " ", "%20"), at, len(image)), true, ""},
		{"a file that is gone", "file:///gone/k.co", false, rebuilt},
		{"a part that ends beyond the file", fmt.Sprintf("%s#offset=%d&size=%d", strings.ReplaceAll(fat, " ", "%20"), at, 1<<30), false, rebuilt},
		{"a part where no code object is", fmt.Sprintf("%s#offset=16&size=%d", strings.ReplaceAll(fat, " ", "%20"), len(image)), false, rebuilt},
		{"another build", file("other.co", other), false, "was not used"},
		{"memory that is not there", "memory://1#offset=0x1234000&size=4096", false, rebuilt},
	} {
		for _, layout := range rocmLayouts {
			m := coreMaker{layout: layout, version: 11, object: func(o *corefile.CodeObject) { o.URI = c.uri }}
			path, _ := writeROCm(t, withHost(t, m.core(w)))
			of, err := rocmEngine(t, Options{}).Open(path)
			if err != nil {
				t.Fatal(err)
			}
			modules := of.process.Modules()
			if len(modules) != 1 || !strings.Contains(modules[0].Problem, c.problem) || (c.problem == "") != (modules[0].Problem == "") {
				t.Errorf("%s, layout %d: %d modules, the first's problem is %q", c.what, layout, len(modules), modules[0].Problem)
				continue
			}
			for i, s := range stacksOf(of)[1:] {
				isTrue(t, s, w.waves[i].stack)
				if c.isNamed && len(s.Frames) != len(w.waves[i].stack) {
					t.Errorf("%s, layout %d: %d frames, expected %d: %v", c.what, layout, len(s.Frames), len(w.waves[i].stack), s.Stopped)
				}
				if s.Thread.Wave.Kernel != w.kernel.Name {
					t.Errorf("%s, layout %d: kernel %q, expected %q", c.what, layout, s.Thread.Wave.Kernel, w.kernel.Name)
				}
				inner := &s.Frames[0]
				name := w.object.Code.Functions[w.object.Code.Function(inner.PC-gcn.CodeBase)]
				if c.isNamed && (len(inner.Symbols) == 0 || inner.Symbols[len(inner.Symbols)-1].Function != name) {
					t.Errorf("%s, layout %d: the innermost function is %v, expected %s", c.what, layout, inner.Symbols, name)
				}
			}
		}
	}
}

// waitingProgram has threads that wait for signals: one for each of the first two, and two
// for the third. Another has the fourth on its stack, and waits for nothing.
const waitingProgram = `
#include <pthread.h>
#include <unistd.h>
static volatile unsigned long state;
__attribute__((noinline)) long hsa_signal_wait_scacquire(unsigned long signal) {
  volatile unsigned long waited = signal;
  for (;;) { pause(); state = waited; }
}
__attribute__((noinline)) void *wait_for(void *signal) { hsa_signal_wait_scacquire((unsigned long)signal); return 0; }
__attribute__((noinline)) void *hold(void *signal) {
  volatile unsigned long held = (unsigned long)signal;
  for (;;) { pause(); state = held; }
}
int main(void) {
  pthread_t t;
  pthread_create(&t, 0, wait_for, (void *)0x51510040);
  pthread_create(&t, 0, wait_for, (void *)0x51510080);
  pthread_create(&t, 0, wait_for, (void *)0x515100c0);
  pthread_create(&t, 0, wait_for, (void *)0x515100c0);
  pthread_create(&t, 0, hold, (void *)0x51510100);
  usleep(100000);
  write(1, "x", 1);
  for (;;) pause();
}
`

// waitingHost is the core of waitingProgram, that gdb takes.
func waitingHost(t *testing.T) []byte {
	t.Helper()
	oracle.Tools(t, "gcc", "gdb")
	dir := t.TempDir()
	source, exe, core := filepath.Join(dir, "w.c"), filepath.Join(dir, "w"), filepath.Join(dir, "core")
	if err := os.WriteFile(source, []byte(waitingProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, "gcc", "-O1", "-g", "-pthread", "-o", exe, source)
	cmd := exec.Command(exe)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	oracle.Run(t, "gdb", "-nx", "-batch", "-p", fmt.Sprint(cmd.Process.Pid), "-ex", "generate-core-file "+core)
	b, err := os.ReadFile(core)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLaunchersOfWavesByEvidence finds the threads that wait for dispatches in a core of a real
// process: one that waits for it is the launcher; of two, or none, the queue is all that is known.
func TestLaunchersOfWavesByEvidence(t *testing.T) {
	gcn.Need(t)
	host := waitingHost(t)
	w := corpusWaves(t, "amdgpu/O2/amd_k.gfx1030.co", 5)
	m := coreMaker{version: 12, host: host}
	c := m.core(w)
	q := &c.Agents[0].Queues[0]
	first := q.Dispatches[0]
	q.Dispatches, q.WriteID = nil, 140
	for i := range uint64(5) {
		d := first
		d.ID, d.Completion = first.ID+i, 0x51510040*1+0x40*i
		q.Dispatches = append(q.Dispatches, d)
	}
	for i := range q.Groups {
		q.Groups[i].Dispatch = i % 5
	}
	path, _ := writeROCm(t, c)
	e := rocmEngine(t, Options{})
	of, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"waiting wait_for", "waiting wait_for", "queue ", "queue ", "queue "}
	check := func(what string, opened *Target) (launchers []string) {
		ids := map[string]bool{}
		for s := range opened.Stacks(context.Background()) {
			if s.Thread.Wave == nil {
				continue
			}
			by := s.LaunchedBy()
			text := by.Evidence + " "
			if by.Evidence == trace.LaunchWaiting {
				ids[by.Thread] = true
				for i := range s.Launchers[0].Frames {
					for _, f := range s.Launchers[0].Frames[i].Symbols {
						if f.Function == "wait_for" {
							text += f.Function
						}
					}
				}
			}
			launchers = append(launchers, text)
		}
		if len(ids) != 2 {
			t.Errorf("%s: %d threads launched something, expected 2", what, len(ids))
		}
		return launchers
	}
	for i, got := range check("the core", of) {
		if got != want[i%5] {
			t.Errorf("wave %d was launched by %q, expected %q", i, got, want[i%5])
		}
	}
	snapshot, _ := taken(t, e, of, SnapshotOptions{})
	for i, got := range check("a snapshot of it", snapshot) {
		if got != want[i%5] {
			t.Errorf("wave %d of the snapshot was launched by %q, expected %q", i, got, want[i%5])
		}
	}
}
