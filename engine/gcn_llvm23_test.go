// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/plugins/amdgpu"
)

// LLVM 23 writes call frame information for AMDGPU, some of it wrong. Frames are right all
// the same: where the code contradicts it they are found by the code.

// executeDescribed walks all kernels of an object that has call frame information at every
// instruction that they execute.
func executeDescribed(t *testing.T, p gcnProcessor, path string) *gcnJudge {
	t.Helper()
	j := newGCNJudge(t, openGCN(t, p, path), amdgpu.New())
	j.by = ""
	stopped := j.executeAll(1, p.lanes-27, func() error { return nil })
	for _, problem := range j.problems {
		t.Error(problem)
	}
	t.Logf("%s: %s; %d frames by code that contradicts it", filepath.Base(path), &j.gcnCounts, j.byCode)
	if stopped != nil {
		t.Skip(stopped) // it has instructions that are not executed here
	}
	return j
}

// TestFramesOfExecutingCodeOfLLVM23 is of objects that it made.
func TestFramesOfExecutingCodeOfLLVM23(t *testing.T) {
	needGCN(t)
	for _, p := range gcnProcessors {
		paths, err := filepath.Glob("../plugins/amdgpu/testdata/*." + p.name + ".llvm23.co")
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if j := executeDescribed(t, p, path); j.byCode == 0 || j.frames < 100 || j.unknown > 0 {
				t.Errorf("%s: %d of %d frames by the code, %d unknown", path, j.byCode, j.frames, j.unknown)
			}
		}
	}
}

// TestFramesOfExecutingCorpusByLLVM23 compiles the corpus with it, where it is installed.
func TestFramesOfExecutingCorpusByLLVM23(t *testing.T) {
	if _, err := exec.LookPath("clang-23"); err != nil {
		t.Skip("clang-23 is not installed")
	}
	needGCN(t)
	library := gcnLibraryFile(t)
	for i, source := range corpusSources(t) {
		gcnCases(i, 2, func(p gcnProcessor, level string) {
			t.Run(filepath.Base(source)+" "+p.name+" "+level, func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "k.co")
				sources := []string{source}
				if filepath.Ext(source) == ".cl" {
					sources = append(sources, library)
				}
				if err := gcnCompileBy("clang-23", p, out, sources, level, "-g"); err != nil {
					t.Fatal(err)
				}
				executeDescribed(t, p, out)
			})
		})
	}
}
