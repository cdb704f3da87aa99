// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// Calls cannot be seen in code that is cut off: no more of it than the first instruction is
// known to be before the first call of the program.
func TestStacksDoNotBeginInCodeThatIsCutOff(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int64{"perf.data": -1, "words": 4096} { // which is before its code
		data, err := os.ReadFile(filepath.Join(filepath.Dir(exampleRecording), name))
		if err != nil {
			t.Fatal(err)
		}
		if size >= 0 {
			data = data[:size]
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := newX86Maker(t)
	k.Finder = func(string) object.Finder { return object.Finder{Store: object.NewStore(), Folders: []string{dir}} }
	p, err := k.Make(t.Context(), filepath.Join(dir, "perf.data"), trace.ProfileOptions{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	const start = 0x401060
	outermost := 0
	for _, s := range p.Samples {
		frames := p.StackFrames(nil, s.Stack)
		if p.Stops[s.Stop].Reason != trace.StopOutermost {
			continue
		}
		outermost++
		if last := p.Frames[frames[len(frames)-1]]; last.PC != start {
			t.Errorf("a stack of %d frames begins at %#x", len(frames), last.PC)
		}
	}
	if outermost != 1 {
		t.Errorf("%d stacks begin at the entry point, expected 1", outermost)
	}
}
