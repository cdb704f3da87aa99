// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// cachedSource is a program that is in leaf nearly always.
const cachedSource = `volatile long s;
__attribute__((noinline)) void leaf(int n) { for (int i = 0; i < n; i++) s += i; }
__attribute__((noinline)) void mid(int n) { leaf(n); s++; }
int main(void) { for (int i = 0; i < 50000; i++) mid(1000); return 0; }
`

// TestAProgramThatIsGone profiles a program that was removed after it was recorded: perf has a
// copy in its cache.
func TestAProgramThatIsGone(t *testing.T) {
	perf, gcc := oracle.Tool(t, "perf"), oracle.Tool(t, "gcc")
	dir := t.TempDir()
	source, program, data, cache := filepath.Join(dir, "a.c"), filepath.Join(dir, "program"), filepath.Join(dir, "perf.data"), filepath.Join(dir, "cache")
	if err := os.WriteFile(source, []byte(cachedSource), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{
		{gcc, "-O1", "-g", "-Wl,--build-id", source, "-o", program},
		{perf, "--buildid-dir", cache, "record", "-q", "-e", "cpu-clock", "--call-graph", "dwarf,4096", "-o", data, program},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			oracle.Missing(t, "%q: %v\n%s", c, err, out)
		}
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	leaves := func(o Options) (named, all int) {
		p, err := newX86Engine(t, o).Profile(context.Background(), data, trace.ProfileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Samples {
			var names []string
			for _, at := range p.StackFrames(nil, p.Samples[i].Stack) {
				for _, s := range p.Frames[at].Symbols {
					names = append(names, s.Function)
				}
			}
			for j, name := range names {
				if name == "leaf" && j+2 < len(names) && names[j+1] == "mid" && names[j+2] == "main" {
					named++
				}
			}
		}
		return named, len(p.Samples)
	}
	if named, _ := leaves(Options{}); named != 0 {
		t.Errorf("%d samples have names without the program", named)
	}
	if named, all := leaves(Options{BuildIDDirs: []string{cache}}); named*100 < all*80 || all < 20 {
		t.Errorf("%d of %d samples are in leaf, called by mid and main", named, all)
	}
}
