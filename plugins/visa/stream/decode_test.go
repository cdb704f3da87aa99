package stream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compiled reads the streams of testdata, by name.
func compiled(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.dbg")
	if err != nil || len(files) == 0 {
		t.Fatalf("no streams in testdata: %v", err)
	}
	streams := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		streams[strings.TrimSuffix(filepath.Base(f), ".dbg")] = b
	}
	return streams
}

func decode(t testing.TB, b []byte) *Stream {
	t.Helper()
	s, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCompiledStreamsAreOfLayoutA(t *testing.T) {
	for name, b := range compiled(t) {
		s := decode(t, b)
		if s.Layout != LayoutA {
			t.Errorf("%s: layout %s", name, s.Layout)
		}
		// The only strange thing is a variable of reordered code.
		if strange := name == "tgllp-rec-O2-1"; strange != (len(s.Problems) == 1) || len(s.Problems) > 1 {
			t.Errorf("%s: %q", name, s.Problems)
		}
	}
}

func TestEveryPrefixIsAnError(t *testing.T) {
	for name, b := range compiled(t) {
		if len(b) > 7000 && os.Getenv("UNWINDD_PROOF") == "" {
			continue // takes seconds
		}
		for n := range b {
			if s, err := Decode(b[:n:n]); err == nil {
				t.Fatalf("%s: %d of %d bytes are read as layout %s", name, n, len(b), s.Layout)
			}
		}
	}
}

// TestOffsetsOfSavesAreCorrected: where registers are saved is what the
// assembly says, `spill to FP[2*32]` and so on.
func TestOffsetsOfSavesAreCorrected(t *testing.T) {
	for name, want := range map[string]map[uint16]int32{
		"dg2-g10-rec-O2-1": {1920: 64, 1952: 96, 1984: 128, 2016: 160, 2048: 192, 2080: 224},
		"pvc-rec-O0-1":     {3840: 64, 3904: 128, 3968: 192, 4032: 256, 4096: 320, 4160: 384, 4224: 448, 4288: 512, 4352: 576},
		"tgllp-rec-O2-1":   nil, // as written
	} {
		s := decode(t, compiled(t)[name])
		frames, corrections := s.Corrected()
		if len(frames) != len(s.Objects) || (len(corrections) > 0) != (want != nil) {
			t.Errorf("%s: %d frames, %q", name, len(frames), corrections)
		}
		if diff := cmp.Diff(decode(t, compiled(t)[name]), s); diff != "" {
			t.Errorf("%s: the stream itself was changed: %s", name, diff)
		}
		for i, f := range frames {
			for _, save := range f.CalleeSaves {
				for _, g := range save.Registers {
					if offset, ok := want[g.Offset]; ok && offset != g.Location.Offset {
						t.Errorf("%s: object %d: %+v, want offset %d", name, i, g, offset)
					}
				}
			}
			if f.savesOutside() {
				t.Errorf("%s: object %d: saves beyond the frame", name, i)
			}
		}
	}
}
