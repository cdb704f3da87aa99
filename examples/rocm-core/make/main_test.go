// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const committed = ".."

// open opens the committed core, or a snapshot of it.
func open(t *testing.T, file string, o engine.Options) *engine.Target {
	t.Helper()
	o.Plugins = plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}
	e, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	target, err := e.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = target.Close() })
	return target
}

// executed executes the code objects of a target anew, and returns their names, too.
func executed(t *testing.T, target *engine.Target, memory map[uint64]uint32) (launches []*launched, names []string) {
	t.Helper()
	core, err := elf.Open(filepath.Join(committed, "crash.core"))
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	images := map[uint64]string{} // URIs by where they are loaded
	for _, m := range target.Process().Modules() {
		if m.Arch == "amdgpu" && len(m.Segments) > 0 {
			images[m.Segments[0].Start-m.Segments[0].Address] = m.Path
		}
	}
	for i := range dispatches {
		d := &dispatches[i]
		uri := images[codeStart+uint64(i)*codeEach]
		path, parameters, _ := strings.Cut(uri, "#")
		values, err := url.ParseQuery(parameters)
		if err != nil {
			t.Fatalf("%s: %v", uri, err)
		}
		offset, _ := strconv.ParseUint(values.Get("offset"), 0, 64)
		size, err := strconv.ParseUint(values.Get("size"), 0, 64)
		if err != nil {
			t.Fatalf("%s: the code object of %s: %v", uri, d.kernel, err)
		}
		image := make([]byte, size)
		if name := filepath.Base(path); strings.HasPrefix(path, "file://") {
			b, err := os.ReadFile(filepath.Join(committed, name))
			if err != nil {
				t.Fatal(err)
			}
			copy(image, b[offset:])
		} else {
			copy(image, memoryAt(t, core, offset, size))
			uri = ""
		}
		code := filepath.Join(t.TempDir(), d.kernel+".co")
		if err := os.WriteFile(code, image, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := d.execute(i, code, memory)
		if err != nil {
			t.Fatal(err)
		}
		launches, names = append(launches, l), append(names, uri)
	}
	return launches, names
}

// memoryAt is memory of a core.
func memoryAt(t *testing.T, core *elf.File, start, size uint64) []byte {
	t.Helper()
	for _, p := range core.Progs {
		if p.Type == elf.PT_LOAD && start >= p.Vaddr && start+size <= p.Vaddr+p.Filesz {
			b := make([]byte, size)
			if _, err := p.ReadAt(b, int64(start-p.Vaddr)); err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	t.Fatalf("the core has no %#x bytes at %#x", size, start)
	return nil
}

// TestCoreIsWhatItsKernelsDo executes the code objects of the core anew: the waves
// have the stacks that the executor kept, and whatever the GPU has in the core is what
// is written of the executed waves.
func TestCoreIsWhatItsKernelsDo(t *testing.T) {
	oracle.Tools(t, "llvm-objdump", "llvm-objdump-22")
	target := open(t, filepath.Join(committed, "crash.core"), engine.Options{})
	memory := global()
	launches, names := executed(t, target, memory)
	if err := compare(target, launches); err != nil {
		t.Error(err)
	}
	if err := compare(snapshotOf(t, target), launches); err != nil {
		t.Errorf("a snapshot: %v", err)
	}
	host := hostProcess{executable: filepath.Join(committed, "host")}
	if err := host.readSignals(); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(target.Threads()[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	core, err := describe(nil, pid, host.signals, names, memory, launches)
	if err != nil {
		t.Fatal(err)
	}
	image, err := core.Build()
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := image.Files()
	if err != nil {
		t.Fatal(err)
	}
	b, err := again.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	want, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	got, err := elf.Open(filepath.Join(committed, "crash.core"))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	compared := 0
	for _, p := range want.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if content := memoryAt(t, want, p.Vaddr, p.Filesz); !bytes.Equal(memoryAt(t, got, p.Vaddr, p.Filesz), content) {
			t.Errorf("the memory at %#x is not what the kernels leave", p.Vaddr)
		}
		compared++
	}
	if compared < 10 {
		t.Errorf("%d pieces of memory were compared, expected 10 or more", compared)
	}
	file, err := os.ReadFile(filepath.Join(committed, "crash.core"))
	if err != nil || !bytes.Contains(file, image.Note()) {
		t.Errorf("the note is another one, or %v", err)
	}
}

// snapshotOf takes a snapshot of a target, and opens it.
func snapshotOf(t *testing.T, target *engine.Target) *engine.Target {
	t.Helper()
	s, err := target.Snapshot(t.Context(), engine.SnapshotOptions{Files: true})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "crash.snapshot")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, file, engine.Options{})
}

// TestWavesHaveTheirLaunchers says what the core has to tell of each wave.
func TestWavesHaveTheirLaunchers(t *testing.T) {
	target := open(t, filepath.Join(committed, "crash.core"), engine.Options{})
	threads := target.Threads()
	if len(threads) != 8 || target.Info().Kind != "rocm-core" {
		t.Fatalf("%s of %d threads, expected a rocm-core of 8", target.Info().Kind, len(threads))
	}
	main, totals := threads[0].ID, threads[1].ID
	for i, want := range []struct {
		kernel, reason, launcher, evidence string
		crashed                            bool
	}{
		{"grade", "", "", "queue", false},
		{"grade", "", "", "queue", false},
		{"inspect", "memory-fault", main, "waiting", true},
		{"inspect", "", main, "waiting", false},
		{"total", "trap", totals, "waiting", true},
		{"total", "", totals, "waiting", false},
	} {
		th := threads[2+i]
		stack := target.Walk(t.Context(), th)
		by := stack.LaunchedBy()
		if by == nil {
			t.Fatalf("%s: nothing is known of its launch", th.ID)
		}
		reason := ""
		if th.Stop != nil {
			reason = th.Stop.Reason
		}
		if th.Wave.Kernel != want.kernel || reason != want.reason || by.Thread != want.launcher || by.Evidence != want.evidence ||
			th.Crashed != want.crashed || th.IsRunning == want.crashed {
			t.Errorf("%s of %s: %q, crashed %v, running %v, launched by %q (%s), expected %+v",
				th.ID, th.Wave.Kernel, reason, th.Crashed, th.IsRunning, by.Thread, by.Evidence, want)
		}
	}
	for _, p := range target.Problems() {
		t.Error(p)
	}
}

// TestOtherExecutableIsNotUsed puts another file in the place of the executable: the
// code objects that are in it are read as they were loaded, and it is said why.
func TestOtherExecutableIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"crash.core", "host"} {
		b, err := os.ReadFile(filepath.Join(committed, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "host" {
			note := []byte("\x03\x00\x00\x00GNU\x00") // the build ID follows
			for at, end := 0, bytes.Index(b, note); end >= 0; end = bytes.Index(b[at:], note) {
				at += end + len(note)
				b[at] ^= 0xff
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	target := open(t, filepath.Join(dir, "crash.core"), engine.Options{})
	read := 0
	for _, m := range target.Process().Modules() {
		if strings.HasPrefix(m.Path, "file:///srv/example/host#") {
			if m.Object == nil || !strings.Contains(m.Problem, "is read from the core's memory") {
				t.Errorf("%s: %s", m.Path, m.Problem)
			}
			read++
		}
	}
	if read != 2 {
		t.Errorf("%d code objects in the executable, expected 2", read)
	}
}
