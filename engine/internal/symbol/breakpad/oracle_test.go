// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// TestEveryAddressAsAnIndependentReaderSees holds Frames against a reader of a few
// lines in another language, which keeps everything and searches from front to
// back, at every address at which something begins or ends.
func TestEveryAddressAsAnIndependentReaderSees(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.sym")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	for seed := range uint64(6) {
		paths = append(paths, randomFile(t, seed))
	}
	python := oracle.Tool(t, "python3")
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		asked, named, inlined := 0, 0, 0
		for line := range strings.Lines(oracle.Run(t, python, "testdata/lookup.py", path)) {
			number, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			address, err := strconv.ParseUint(number, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			asked++
			got := textAt(t, f, address)
			if got != want {
				t.Fatalf("%s: %#x:\n got %s\nwant %s", path, address, got, want)
			}
			if got != "" {
				named++
			}
			inlined += strings.Count(got, "|")
		}
		if named == 0 && f.Counts().Functions > 0 {
			t.Errorf("%s: %d addresses, none of them has a name", path, asked)
		}
		t.Logf("%s: %d addresses, %d named, %d inlined calls", filepath.Base(path), asked, named, inlined)
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// textAt writes frames as testdata/lookup.py does.
func textAt(t *testing.T, f *File, address uint64) string {
	t.Helper()
	frames, err := f.Frames(nil, address)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i, frame := range frames {
		name := frame.LinkageName
		if name == "" {
			name = frame.Function
		}
		if frame.Inlined == (i == len(frames)-1) {
			t.Errorf("%#x: frame %d of %d: Inlined is %v", address, i, len(frames), frame.Inlined)
		}
		out = append(out, fmt.Sprintf("%s@%s:%d", name, frame.File, frame.Line))
	}
	return strings.Join(out, "|")
}
