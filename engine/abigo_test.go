// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/subject"
)

var (
	goTraceback = regexp.MustCompile(`(?m)^goroutine ([0-9]+) .*$`)
	goPlace     = regexp.MustCompile(`fp=(0x[0-9a-f]+) sp=0x[0-9a-f]+ pc=(0x[0-9a-f]+)`)
)

// TestGoroutinesOfOtherABIsAreGos has a Go program of ppc64le and s390x panic under qemu, and
// compares the PCs and CFAs of every goroutine with the traceback that it printed.
func TestGoroutinesOfOtherABIsAreGos(t *testing.T) {
	t.Parallel()
	long(t)
	proof.Only(t) // Go's library is compiled for each
	for _, m := range crossMachines {
		if m.machine == "ppc64" {
			continue // it differs from ppc64le in nothing that Go has
		}
		t.Run(m.machine, func(t *testing.T) {
			oracle.Tools(t, "qemu-"+m.machine, "sh")
			dir := t.TempDir()
			oracle.With{Env: []string{"GOARCH=" + m.machine, "CGO_ENABLED=0"}}.Run(t, "go", "build", "-o", filepath.Join(dir, "subject"), filepath.Join(subject.Source(t, "abigo"), "main.go"))
			cmd := exec.Command("sh", "-c", "ulimit -c unlimited && GOTRACEBACK=crash exec qemu-"+m.machine+" ./subject")
			cmd.Dir = dir
			said, _ := cmd.CombinedOutput() // it panics
			cores, _ := filepath.Glob(filepath.Join(dir, "qemu_*.core"))
			if len(cores) != 1 {
				t.Fatalf("%d cores of qemu:\n%s", len(cores), said)
			}
			got := enginetest.Report(t, cores[0], madeOf(filepath.Join(dir, "subject")), func(a *enginetest.Ask) {
				isRequested := true
				a.Stack.Goroutines = &isRequested
				a.Engine.Plugins.InProcess = append(a.Engine.Plugins.InProcess, m.arch)
			})
			compared := 0
			for i := range got.Threads {
				th := &got.Threads[i]
				if th.Goroutine == nil {
					continue
				}
				want := goFramesOf(t, string(said), fmt.Sprint(th.Goroutine.ID))
				var frames []goFrame
				for j := range th.Frames {
					if f := &th.Frames[j]; !f.Inlined {
						frames = append(frames, goFrame{hexOf(t, f.PC), hexOf(t, f.CFA)})
					}
				}
				if len(want) == 0 || len(frames) < len(want) {
					t.Errorf("goroutine %d: %d frames, Go has %d", th.Goroutine.ID, len(frames), len(want))
					continue
				}
				compared++
				if diff := cmp.Diff(want, frames[len(frames)-len(want):]); diff != "" {
					t.Errorf("goroutine %d (-Go +unwindd):\n%s", th.Goroutine.ID, diff)
				}
			}
			if compared < 4 {
				t.Errorf("%d goroutines, expected 4 at least", compared)
			}
		})
	}
}

// goFramesOf are the frames of a goroutine in the output of a program.
func goFramesOf(t *testing.T, said, id string) (frames []goFrame) {
	t.Helper()
	for _, at := range goTraceback.FindAllStringSubmatchIndex(said, -1) {
		if said[at[2]:at[3]] != id {
			continue
		}
		part, _, _ := strings.Cut(said[at[0]:], "\n\n")
		for _, m := range goPlace.FindAllStringSubmatch(part, -1) {
			pc, err := strconv.ParseUint(m[2], 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			cfa, err := strconv.ParseUint(m[1], 0, 64)
			if err != nil {
				t.Fatal(err)
			}
			frames = append(frames, goFrame{pc, cfa})
		}
		return frames
	}
	return nil
}
