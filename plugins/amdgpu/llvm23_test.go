// SPDX-License-Identifier: Apache-2.0

package amdgpu_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/internal/gcn"
	"github.com/unwindd/unwindd/internal/wavecheck"
	"github.com/unwindd/unwindd/plugins/amdgpu"
)

// LLVM 23 writes call frame information for AMDGPU, some of it wrong. Frames are right all
// the same: where the code contradicts it they are found by the code.

// executeDescribed walks all kernels of an object that has call frame information at every
// instruction that they execute.
func executeDescribed(t *testing.T, p gcn.Processor, path string) *wavecheck.Judge {
	t.Helper()
	j := newJudge(t, gcn.Open(t, p, path), amdgpu.New())
	j.By = ""
	stopped := j.ExecuteAll(1, p.Lanes-27, func() error { return nil })
	for _, problem := range j.Problems {
		t.Error(problem)
	}
	t.Logf("%s: %s; %d frames by code that contradicts it", filepath.Base(path), &j.Counts, j.ByCode)
	if stopped != nil {
		t.Skip(stopped) // it has instructions that are not executed here
	}
	return j
}

// TestFramesOfExecutingCodeOfLLVM23 is of objects that it made.
func TestFramesOfExecutingCodeOfLLVM23(t *testing.T) {
	gcn.Need(t)
	for _, p := range gcn.Processors {
		paths, err := filepath.Glob("testdata/*." + p.Name + ".llvm23.co")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if j := executeDescribed(t, p, path); j.ByCode == 0 || j.Frames < 100 || j.Unknown > 0 {
				t.Errorf("%s: %d of %d frames by the code, %d unknown", path, j.ByCode, j.Frames, j.Unknown)
			}
		}
	}
}

// TestFramesOfExecutingCorpusByLLVM23 compiles the corpus with it, where it is installed.
func TestFramesOfExecutingCorpusByLLVM23(t *testing.T) {
	if _, err := exec.LookPath("clang-23"); err != nil {
		t.Skip("clang-23 is not installed")
	}
	gcn.Need(t)
	library := gcn.LibraryFile(t)
	for i, source := range gcn.CorpusSources(t) {
		gcn.Cases(i, 2, func(p gcn.Processor, level string) {
			t.Run(filepath.Base(source)+" "+p.Name+" "+level, func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "k.co")
				sources := []string{source}
				if filepath.Ext(source) == ".cl" {
					sources = append(sources, library)
				}
				if err := gcn.CompileBy("clang-23", p, out, sources, level, "-g"); err != nil {
					t.Fatal(err)
				}
				executeDescribed(t, p, out)
			})
		})
	}
}
