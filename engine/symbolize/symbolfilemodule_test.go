// SPDX-License-Identifier: Apache-2.0

package symbolize_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestIdentity: a file is called by its build ID and its DT_SONAME, or else by its text and its name.
func TestIdentity(t *testing.T) {
	dir := programs(t)
	fixed := filepath.Join(dir, "gcc-fixed")
	m, code, err := openFile(t, fixed).Identify()
	if err != nil {
		t.Fatal(err)
	}
	// The hash of the text, as a few lines compute it.
	f, err := elf.Open(fixed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := os.ReadFile(fixed)
	if err != nil {
		t.Fatal(err)
	}
	text := f.Section(".text")
	hash := make([]byte, 16)
	for i := uint64(0); i < min(4096, text.Size); i += 16 {
		for k := range hash {
			hash[k] ^= data[text.Offset+i+uint64(k)]
		}
	}
	want := strings.ToUpper(strings.Trim(strings.ReplaceAll(oracle.With{Input: string(hash)}.Run(t, "od", "-An", "-v", "-tx1", "-w16"), " ", ""), "\n"))
	if code != want || m.OS != "Linux" || m.Arch != "x86_64" || m.Name != "gcc-fixed" {
		t.Errorf("%+v %s, expected %s", m, code, want)
	}
	guid := want[6:8] + want[4:6] + want[2:4] + want[0:2] + want[10:12] + want[8:10] + want[14:16] + want[12:14] + want[16:] + "0"
	if m.ID != guid {
		t.Errorf("%s, expected %s", m.ID, guid)
	}
}

// TestIdentityOfAPEFile: it is what the file's CodeView record says.
func TestIdentityOfAPEFile(t *testing.T) {
	f := openFile(t, filepath.Join(programs(t), "mingw.exe"))
	id, err := f.Object.PE().Identity()
	if err != nil {
		t.Fatal(err)
	}
	m, code, err := f.Identify()
	if err != nil || m.OS != "windows" || m.Arch != "x86_64" || m.ID != id.DebugID() || len(m.ID) < 33 || m.Name != "mingw.exe" || code != id.CodeID()+" mingw.exe" {
		t.Errorf("%+v, %q, %v", m, code, err)
	}
}

// TestWhatHasNoSymbolFile: the error says why.
func TestWhatHasNoSymbolFile(t *testing.T) {
	dir := oracle.Build{Commands: [][]string{
		{"sh", "-c", "echo 'int f(void) { return 1; }' > f.c && gcc -c f.c -o f.o && gcc -shared f.c -o f.so -Wl,-soname,libf.so.1"},
		{"clang-22", "-target", "bpfel", "-c", "f.c", "-o", "bpf.o"},
	}}.Make(t)
	for name, want := range map[string]error{"f.o": symbolize.ErrNotLoaded, "bpf.o": symbolize.ErrNotLoaded, "f.so": nil} {
		m, _, err := openFile(t, filepath.Join(dir, name)).Identify()
		if !errors.Is(err, want) || err == nil && m.Name != "libf.so.1" {
			t.Errorf("%s: %+v, %v, expected %v", name, m, err, want)
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "f.so"))
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(data)
	other[18], other[19] = 0xe0, 0 // EM_AMDGPU
	path := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(path, other, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openFile(t, path).Identify(); !errors.Is(err, symbolize.ErrNoArch) {
		t.Errorf("%v, expected %v", err, symbolize.ErrNoArch)
	}
}
