// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"debug/elf"
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// compile builds testdata/name with gcc.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "a.out")
	args := append([]string{"-o", out, filepath.Join("testdata", name)}, flags...)
	if msg, err := exec.Command(oracle.Tool(t, "gcc"), args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, msg)
	}
	return out
}

// elfTable makes the table of a section of an x86-64 file; nil where the file
// has no such section.
func elfTable(t testing.TB, path, name string) (*Table, *elf.File) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	s := f.Section(name)
	if s == nil {
		return nil, f
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	section := Section{Name: name, Data: data, Address: s.Addr, EH: name == ".eh_frame", Order: f.ByteOrder, AddressSize: 8}
	if got := f.Section(".got"); got != nil {
		section.DataBase = got.Addr
	}
	table, err := NewTable(section)
	if err != nil {
		t.Fatal(err)
	}
	return table, f
}

// The linker drops unused() and leaves its FDE in .debug_frame, at 0.
func TestAnFDEOfDroppedCodeIsListedAndNotFound(t *testing.T) {
	table, _ := elfTable(t, compile(t, "frames.c", "-O2", "-g", "-mavx", "-fno-exceptions", "-fno-asynchronous-unwind-tables",
		"-ffunction-sections", "-Wl,--gc-sections"), ".debug_frame")
	if table == nil {
		t.Fatal("no .debug_frame")
	}
	dropped := 0
	for f, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		if f.Start == 0 {
			dropped++
		}
	}
	if dropped != 1 {
		t.Errorf("%d FDEs of dropped code are listed, want 1", dropped)
	}
	if _, err := table.FDE(0); !errors.Is(err, ErrNoFDE) {
		t.Errorf("FDE of dropped code: %v, want %v", err, ErrNoFDE)
	}
}

// library finds a library of the system that is built for x86-64.
func library(name string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		for _, dir := range []string{"/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"} {
			path := filepath.Join(dir, name)
			if f, err := elf.Open(path); err == nil {
				machine := f.Machine
				f.Close()
				if machine == elf.EM_X86_64 {
					return path
				}
			}
		}
		oracle.Missing(t, "no %s for x86-64 is installed", name)
		return ""
	}
}
