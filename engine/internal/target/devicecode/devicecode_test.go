// SPDX-License-Identifier: Apache-2.0

package devicecode

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
)

const someMaps = `5581e0a00000-5581e0a02000 r--p 00000000 08:01 393 /usr/bin/python3.12
5581e0a02000-5581e0a04000 r-xp 00002000 08:01 393 /usr/bin/python3.12
5581e1000000-5581e1100000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000100000 rw-p 00000000 00:00 0 
7f0000100000-7f0000200000 ---p 00000000 00:00 0 
7f0000200000-7f0000300000 rw-s 00000000 00:06 12                         /dev/nvidia0
7f0000300000-7f0000400000 rw-s 00000000 00:01 13                         /memfd:cubins (deleted)
7f0000400000-7f0000500000 r--p 00000000 08:01 14                         /tmp/gone with it.so (deleted)
7f0000500000-7f0000600000 r--p 00001000 08:01 15                         /opt/a lib.so
7ffc00000000-7ffc00100000 rw-p 00000000 00:00 0                          [stack]
7ffc00200000-7ffc00201000 r--p 00000000 00:00 0                          [vvar]
`

// TestMappings reads mappings: each file is listed once, and the process's own memory is searched.
func TestMappings(t *testing.T) {
	p := &Process{}
	if err := p.read([]byte(someMaps), "/proc/1/root"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"/proc/1/root/usr/bin/python3.12", "/proc/1/root/opt/a lib.so"}, p.Files); d != "" {
		t.Errorf("files (-want +got)\n%s", d)
	}
	const mega = 1 << 20
	want := []object.MemoryRange{{Start: 0x5581e1000000, Size: mega}, {Start: 0x7f0000000000, Size: mega}, {Start: 0x7f0000300000, Size: mega}, {Start: 0x7f0000400000, Size: mega}}
	if d := cmp.Diff(want, p.Ranges); d != "" {
		t.Errorf("ranges (-want +got)\n%s", d)
	}
	for _, bad := range []string{"x", "1-2 r--p", "2-1 r--p 0 0 0", "g-h r--p 0 0 0", "1 r--p 0 0 0", "1-2 r 0 0 0"} {
		if err := (&Process{}).read([]byte(someMaps+bad+"\n"), ""); err == nil || !strings.Contains(err.Error(), "line 12 of its mappings") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestPIDOf: a file whose name is digits is a file.
func TestPIDOf(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("77", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"77": 0, "78": 78, "0": 0, "-3": 0, "a": 0, filepath.Join("x", "78"): 0, "99999999999": 0} {
		if pid, ok := PIDOf(name); ok != (want > 0) || ok && pid != want {
			t.Errorf("%q: %d, %v", name, pid, ok)
		}
	}
}

// TestOwnMemory finds a cubin in the memory of this process, which is a living one.
func TestOwnMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	data, err := os.ReadFile("../../../object/testdata/fat/plain.fatbin")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for n, err := range object.NestedInMemory("self", p.Ranges, p.Read) {
		if err == nil && strings.HasSuffix(n.Name, "sm_90a") && len(n.Data) == 4660 {
			found++
		}
	}
	if found == 0 || len(p.Files) == 0 {
		t.Errorf("%d cubins, %d files", found, len(p.Files))
	}
	runtime.KeepAlive(data)
	if _, err := Open(1<<31 - 1); err == nil || !strings.Contains(err.Error(), "there is no process 2147483647") {
		t.Error(err)
	}
}

// FuzzMaps reads whatever a list of mappings may have.
func FuzzMaps(f *testing.F) {
	f.Add([]byte(someMaps))
	f.Fuzz(func(_ *testing.T, data []byte) { _ = (&Process{}).read(data, "/root") })
}
