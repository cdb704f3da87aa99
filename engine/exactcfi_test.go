// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/gcn"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/wavecheck"
)

// exactCFI walks kernels by call frame information that is exact: where it is
// placed follows from executing the same code.
func exactCFI(t *testing.T, p gcn.Processor, level string, sources []string, seed uint64, items int) *wavecheck.Judge {
	t.Helper()
	dir := t.TempDir()
	plain := filepath.Join(dir, "k.co")
	var assemblies []string
	for i, source := range sources {
		assemblies = append(assemblies, filepath.Join(dir, fmt.Sprintf("%d.s", i)))
		gcn.Compile(t, p, assemblies[i], []string{source}, level, "-g", "-S")
	}
	gcn.Compile(t, p, plain, assemblies)
	o := gcn.Open(t, p, plain)
	with := gcn.WithCFI(t, o, assemblies, gcn.Launches(o, seed, items))
	j := newWave(t, with, Options{NoSymbols: true}).Judge
	j.By = trace.ByCFI
	if err := j.ExecuteAll(seed, items, func() error { return nil }); err != nil {
		t.Error(err)
	}
	return j
}

// TestFramesOfExecutingKernelsByExactCFI shows that both ways agree: what frames
// are is known by executing, and is what the rules of the code say and what call
// frame information says.
func TestFramesOfExecutingKernelsByExactCFI(t *testing.T) {
	gcn.Need(t)
	var table wavecheck.Table
	t.Cleanup(func() { table.Judge(t) })
	programs := uint64(3)
	if proof.IsRequested() {
		programs = 50
	}
	for seed := range programs {
		gcn.Cases(int(seed)+1, 1, func(p gcn.Processor, level string) { //nolint:gosec // small
			t.Run(fmt.Sprint(seed, " ", p.Name, " ", level), func(t *testing.T) {
				t.Parallel()
				device, _ := gcn.Program(t, p, seed, level)
				table.Add(t, p, level, exactCFI(t, p, level, []string{device}, seed, p.Lanes-9))
			})
		})
	}
	if proof.IsRequested() {
		library := gcn.LibraryFile(t)
		for _, source := range gcn.CorpusSources(t) {
			sources := []string{source}
			if filepath.Ext(source) == ".cl" {
				sources = append(sources, library)
			}
			gcn.Cases(0, 0, func(p gcn.Processor, level string) {
				t.Run(filepath.Base(source)+" "+p.Name+" "+level, func(t *testing.T) {
					t.Parallel()
					table.Add(t, p, level, exactCFI(t, p, level, sources, 1, p.Lanes-9))
				})
			})
		}
	}
}
