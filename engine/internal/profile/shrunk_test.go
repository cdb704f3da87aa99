// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// The rest of the page in which a file ends reads as zeros, among them the PCs of samples:
// a recording that is cut while it is walked is an error, not a profile.
func TestRecordingsCutMeanwhileAreErrors(t *testing.T) {
	data, err := os.ReadFile(exampleRecording)
	if err != nil {
		t.Fatal(err)
	}
	k := newX86Maker(t)
	for name, walk := range map[string]func(path string, o trace.ProfileOptions) error{
		"the whole": func(path string, o trace.ProfileOptions) error { _, err := k.Make(t.Context(), path, o); return err },
		"a part": func(path string, o trace.ProfileOptions) error {
			return k.MakePart(t.Context(), path, trace.ProfilePart{Index: 0, Count: 1}, o, io.Discard)
		},
	} {
		path := filepath.Join(t.TempDir(), "perf.data")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		cut := func(uint64, uint64) { _ = os.Truncate(path, 55762) } // in the middle of a page, and of a sample
		if err := walk(path, trace.ProfileOptions{Jobs: 1, Progress: cut}); !errors.Is(err, object.ErrFileShrank) {
			t.Errorf("%s: %v, expected an error that wraps ErrFileShrank", name, err)
		}
	}
}
