// SPDX-License-Identifier: Apache-2.0

package goroutine

import (
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// What is known of this version of Go is what its DWARF says.
func TestKnownLayoutIsThatOfDWARF(t *testing.T) {
	oracle.Tools(t, "go")
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { select {} }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "program")
	oracle.With{Env: []string{"CGO_ENABLED=0", "GOFLAGS="}}.Run(t, "go", "build", "-o", exe, source)
	o, err := object.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if o.AddressSize() != 8 {
		t.Skip("addresses of 32 bits")
	}
	d, err := dwarf.New(o)
	if err != nil {
		t.Fatal(err)
	}
	want, err := readLayout(d)
	if err != nil {
		t.Fatal(err)
	}
	name, err := versionOf(o)
	if err != nil || !strings.HasPrefix(goruntime.Version(), name) {
		t.Fatalf("%q, %v, expected %s", name, err, goruntime.Version())
	}
	got, err := layoutOf(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, structs := range []struct{ got, want []wanted }{{got.g.wanted(), want.g.wanted()}, {got.m.wanted(), want.m.wanted()}} {
		for i, w := range structs.want {
			if diff := cmp.Diff(*w.to, *structs.got[i].to, cmp.AllowUnexported(field{})); diff != "" {
				t.Errorf("%s (-DWARF +known):\n%s", w.path, diff)
			}
		}
	}
	if got.g.size > want.g.size || got.m.size > want.m.size || got.scan != want.scan {
		t.Errorf("sizes %d and %d, scan %#x; DWARF says %d, %d and %#x", got.g.size, got.m.size, got.scan, want.g.size, want.m.size, want.scan)
	}
	for n, state := range want.name {
		if n < 12 && !strings.HasSuffix(state, "unused") && got.name[n] != state {
			t.Errorf("state %d is %q, expected %q", n, got.name[n], state)
		}
	}
}

func TestVersionsWithoutKnownLayout(t *testing.T) {
	for name, isKnown := range map[string]bool{"go1.17.13": false, "go1.18": true, "go1.22.1": true, "go1.27rc1": true, "go1.31.2": true} {
		if l, err := layoutOf(name); (err == nil) != isKnown || (l != nil) != isKnown {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestObjectsThatDoNotSayTheirVersion(t *testing.T) {
	o, err := object.New("runtime.elf", readRuntime(t))
	if err != nil {
		t.Fatal(err)
	}
	if name, err := versionOf(o); !errors.Is(err, errNoVersion) {
		t.Errorf("%q, %v", name, err)
	}
}
