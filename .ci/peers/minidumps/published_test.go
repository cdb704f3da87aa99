// SPDX-License-Identifier: Apache-2.0

package minidumps

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// published are the stacks that rust-minidump has beside its dumps, and whether they are
// by its symbols.
var published = []struct {
	dump, stacks string
	hasSymbols   bool
}{
	{"linux-mini.dmp", "linux", false},
	{"pipeline-inlines-macos-segv.dmp", "macos_inlines", true},
}

// TestPublicDumpsGiveThePublishedStacks compares frame by frame, up to where scanning
// begins.
func TestPublicDumpsGiveThePublishedStacks(t *testing.T) {
	folder := os.Getenv(publicDumps)
	if folder == "" {
		t.Skipf("%s names no folder of dumps", publicDumps)
	}
	for _, p := range published {
		symbols := t.TempDir()
		if p.hasSymbols {
			symbols = filepath.Join(folder, "symbols")
		}
		theirs := readPublished(t, filepath.Join(folder, "rust", "test_minidump_stackwalk__"+p.stacks+"_json_pretty.snap"))
		ours := readStacks(t, filepath.Join(folder, "rust", p.dump), "--symbols", symbols, "--sysroot", t.TempDir())
		var c tally
		c.add(t, p.dump, ours, theirs)
		t.Logf("%s: %d frames are equal; %v", p.dump, c.frames, c.classes)
	}
}

// readPublished reads a snapshot of the tool insta: a head between lines of dashes, and
// the JSON of rust-minidump's minidump-stackwalk.
func readPublished(t testing.TB, path string) [][]peerFrame {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(strings.TrimPrefix(string(text), "---\n"), "\n---\n")
	type place struct {
		Function, File string
		Line           uint64
	}
	var d struct {
		Threads []struct {
			Frames []struct {
				place
				Inlines       []place
				Module        string
				Offset, Trust string
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var threads [][]peerFrame
	for _, th := range d.Threads {
		var frames []peerFrame
		for _, f := range th.Frames {
			pc, err := strconv.ParseUint(f.Offset, 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			if f.Trust != "context" {
				pc++ // the offset is one before the return address
			}
			for _, c := range append(f.Inlines, f.place) {
				frames = append(frames, peerFrame{pc, lastPart(f.Module), c.Function, lastPart(c.File), c.Line, f.Trust == "scan"})
			}
		}
		threads = append(threads, frames)
	}
	return threads
}
