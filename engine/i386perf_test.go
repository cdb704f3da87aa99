// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86"
	"github.com/unwindd/unwindd/sdk"
)

// Samples that perf took of a 32-bit process have every function up to main.
func TestSamplesOfI386HaveTheirCallers(t *testing.T) {
	oracle.Tools(t, "gcc", "perf")
	program, data := filepath.Join(t.TempDir(), "spin"), filepath.Join(t.TempDir(), "perf.data")
	args := append([]string{"-m32", "-O2", "-g", "-o", program, filepath.Join("testdata", "i386", "spin.c")}, strings.Fields(os.Getenv("UNWINDD_I386_GCC"))...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		oracle.Missing(t, "gcc makes no 32-bit programs (gcc-multilib): %s", out)
	}
	oracle.Run(t, "perf", "record", "-q", "-F", "499", "-e", "cpu-clock", "--call-graph", "dwarf,4096", "-o", data, "--", program)
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	p, err := e.Profile(context.Background(), data, trace.ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, s := range p.Samples {
		var names []string
		for _, f := range p.StackFrames(nil, s.Stack) {
			if symbols := p.Frames[f].Symbols; len(symbols) > 0 {
				names = append(names, symbols[0].Name)
			}
		}
		if stack := strings.Join(names, " "); strings.HasPrefix(stack, "leaf ") {
			count++
			if !strings.HasPrefix(stack, "leaf middle outer main ") {
				t.Errorf("%s, expected leaf middle outer main", stack)
			}
		}
	}
	if count < 5 {
		t.Errorf("%d samples of the leaf, expected more", count)
	}
	t.Log(count, "samples")
}
