// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// sleepCore is a core of `sleep` that gdb wrote.
func sleepCore(t testing.TB) string {
	t.Helper()
	core := filepath.Join(t.TempDir(), "core")
	sleep := exec.Command(oracle.Tool(t, "sleep"), "100")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }()
	gdb := exec.Command(oracle.Tool(t, "gdb"), "-nx", "-batch", "-p", fmt.Sprint(sleep.Process.Pid), "-ex", "gcore "+core)
	if out, err := gdb.CombinedOutput(); err != nil {
		oracle.Missing(t, "%v: %s", err, out)
	}
	if _, err := os.Stat(core); err != nil {
		oracle.Missing(t, "gdb wrote no core: %v", err)
	}
	return core
}

// shellCore is a core of `sh` that the kernel wrote.
func shellCore(t testing.TB) string {
	t.Helper()
	sh := exec.Command(oracle.Tool(t, "sh"), "-c", "ulimit -c unlimited; kill -SEGV $$")
	sh.Dir = t.TempDir()
	_ = sh.Run() // it dies
	list, err := filepath.Glob(filepath.Join(sh.Dir, "core*"))
	if err != nil || len(list) != 1 {
		oracle.Missing(t, "the kernel wrote no core into the directory of the process: %v", err)
	}
	return list[0]
}

// BenchmarkOpenKnownFiles opens and closes a core whose files somebody has open.
func BenchmarkOpenKnownFiles(b *testing.B) {
	for _, from := range []struct {
		name string
		core func(testing.TB) string
	}{{"kernel", shellCore}, {"gdb", sleepCore}} {
		path := from.core(b)
		b.Run(from.name+"/store", func(b *testing.B) { benchmarkOpen(b, path, object.NewStore()) })
		b.Run(from.name+"/none", func(b *testing.B) { benchmarkOpen(b, path, nil) })
	}
}

func benchmarkOpen(b *testing.B, path string, store *object.Store) {
	options := Options{
		Finder:   object.Finder{Store: store, Folders: []string{filepath.Dir(path)}},
		Describe: func(object.ELFMachine) (*sdk.Description, error) { return amd64Description(), nil },
	}
	first, err := Open(path, options)
	if err != nil {
		b.Fatal(err)
	}
	defer first.Close()
	b.ReportAllocs()
	for b.Loop() {
		c, err := Open(path, options)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
