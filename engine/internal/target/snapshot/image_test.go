// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// TestSegmentsCountFromTheImageUntilTheFileIsFound: where a file was not there when a
// snapshot was taken, the addresses of its segments count from the image; where it is not
// there now, they do too.
func TestSegmentsCountFromTheImageUntilTheFileIsFound(t *testing.T) {
	code := elfFile(62, []byte{1, 2, 3, 4})
	const at = 0x7f0000
	module := func(file string, address any) map[string]any {
		m := map[string]any{
			"path": "/nowhere/server", "arch": "host", "debug_file": "server.pdb", "debug_id": "AB1", "code_id": "CD2", "version": "1.2",
			"image":    map[string]any{"start": "0x7f0000", "size": "0x3000"},
			"segments": []any{map[string]any{"address": address, "size": "0x40", "start": "0x7f0000"}},
		}
		if file != "" {
			m["file"] = file
		}
		return m
	}
	for _, tt := range []struct {
		what, file, address string
		want                uint64
	}{
		{"taken without the file, read with it", "modules/x.elf", "0x0", codeAddress},
		{"taken and read with the file", "modules/x.elf", "0x1000", codeAddress},
		{"taken with the file, read without it", "", "0x1000", 0},
		{"taken and read without the file", "", "0x0", 0},
	} {
		s := openDocument(t, map[string]any{"format_version": 1, "modules": []any{module(tt.file, tt.address)}}, file{name: "modules/x.elf", data: code})
		m := s.Modules()[0]
		want := []trace.Segment{{Address: tt.want, Size: 0x40, Start: at, Executable: true}}
		if d := cmp.Diff(want, m.Segments); d != "" {
			t.Errorf("%s:\n%s", tt.what, d)
		}
		if m.Base != at || m.Size != 0x3000 || m.Version != "1.2" || m.Symbols != (trace.SymbolID{DebugFile: "server.pdb", DebugID: "AB1", CodeID: "CD2"}) {
			t.Errorf("%s: %+v", tt.what, m)
		}
	}
}

// A hostile image is left out, and said.
func TestAnImageThatCannotBeIsLeftOut(t *testing.T) {
	for _, image := range []map[string]any{{"start": "0xffffffffffffff00", "size": "0x1000"}, {"start": "oops", "size": "0x1"}, {"start": "0x0", "size": "0x11111111111111111"}} {
		s := openDocument(t, map[string]any{"format_version": 1, "modules": []any{map[string]any{"arch": "host", "image": image}}})
		if m := s.Modules()[0]; m.Size != 0 || m.Problem == "" {
			t.Errorf("%v: %+v", image, m)
		}
	}
}

// Why a target was kept is written and read again.
func TestWhyATargetWasKeptIsReadAgain(t *testing.T) {
	for _, crash := range []trace.Crash{
		{Name: "EXCEPTION_ACCESS_VIOLATION_READ", Address: 0x45, HasAddress: true, Thread: "7", Assertion: "p"},
		{Name: "SIGABRT"}, {Name: "DUMP_REQUESTED", IsRequest: true},
		{Name: "X", HasAddress: true},
	} {
		s := openBytes(t, writeBytes(t, &Contents{Crash: &crash}))
		if d := cmp.Diff(&trace.Facts{Crash: &crash}, s.Info().Facts); d != "" || len(problems(s)) > 0 {
			t.Errorf("%s, problems %q", d, problems(s))
		}
	}
	s := openDocument(t, map[string]any{"format_version": 1, "crash": map[string]any{"address": "x"}})
	if p := problems(s); len(p) != 1 || s.Info().Facts.Crash.HasAddress {
		t.Errorf("problems %q, %+v", p, s.Info().Facts.Crash)
	}
}
