// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// The example of the documentation is a program, and makes a snapshot.
func TestPythonWritesSnapshotsAsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/snapshot.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(text)
	if example == nil {
		t.Fatal("docs/snapshot.md has no example in Python")
	}
	dir := t.TempDir()
	for _, compression := range []string{"ZIP_DEFLATED", "ZIP_STORED"} {
		program := "stack = bytes(range(256)) * 16\n" + strings.ReplaceAll(strings.ReplaceAll(string(example[1]), "x86_64", "host"), "ZIP_DEFLATED", compression)
		program = strings.ReplaceAll(strings.ReplaceAll(program, `"rip"`, `"pc"`), `"rsp"`, `"sp"`)
		oracle.With{Dir: dir}.Run(t, "python3", "-c", program)
		s, err := Open(filepath.Join(dir, "crash.snapshot"), options())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		th := s.Threads()
		if len(th) != 1 || th[0].ID != "4711" || !th[0].Crashed || s.Info().Signal != 11 || len(s.Modules()) != 1 {
			t.Errorf("%+v of %+v", th, s.Info())
		}
		want := []string{`thread "4711": register "rbp" is not one of architecture host`}
		if p := problems(s); len(p) != 1 || p[0] != want[0] {
			t.Errorf("problems %q, expected %q", p, want)
		}
		check(t, compression, fill(16, 32), func(buf []byte) (int, error) { return s.ReadMemory(0, 0x7ffd1110, buf) })
	}
}

// Python writes some archives in other ways: to what it cannot seek in, sizes
// follow the data, and large members have 64-bit headers.
func TestPythonsOtherFormsAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stream.snapshot")
	program := `
import io, json, sys, zipfile
class Stream(io.RawIOBase):
    def __init__(self, f): self.f = f
    def writable(self): return True
    def write(self, b): return self.f.write(b)
with open(sys.argv[1], "wb") as f, zipfile.ZipFile(Stream(f), "w", zipfile.ZIP_DEFLATED) as z:
    with z.open("memory/0.bin", "w", force_zip64=True) as m: m.write(bytes(range(64)))
    z.writestr("snapshot.json", json.dumps({"format_version": 1, "threads": [{"id": "1", "name": "th\u00e9\U0001f600", "arch": "host", "registers": {"pc": "0x1"}}],
        "memory": [{"file": "memory/0.bin", "space": "global", "address": "0x1000"}]}, indent=2))
`
	oracle.Run(t, "python3", "-c", program, path)
	s, err := Open(path, options())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if p := problems(s); len(p) > 0 || s.Threads()[0].Name != "th\u00e9\U0001f600" {
		t.Errorf("problems %q, name %q", p, s.Threads()[0].Name)
	}
	check(t, "memory", fill(0, 64), func(buf []byte) (int, error) { return s.ReadMemory(0, 0x1000, buf) })
}
