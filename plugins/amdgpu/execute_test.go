// SPDX-License-Identifier: Apache-2.0

package amdgpu_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/internal/gcn"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/wavecheck"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// newJudge makes a judge of the walks of an engine with the plugin.
func newJudge(t testing.TB, o *gcn.Object, arch sdk.Architecture) *wavecheck.Judge {
	t.Helper()
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{arch}}, NoSymbols: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	j := wavecheck.New(t, o)
	j.Walker = e.Attach(j).Process()
	return j
}

// TestFramesOfExecutingCorpus walks the kernels of the corpus at every instruction
// that they execute: without call frame information, by what the code says.
func TestFramesOfExecutingCorpus(t *testing.T) {
	gcn.Need(t)
	library := gcn.LibraryFile(t)
	var table wavecheck.Table
	t.Cleanup(func() { table.Judge(t) })
	for i, source := range gcn.CorpusSources(t) {
		gcn.Cases(i, 1, func(p gcn.Processor, level string) {
			t.Run(filepath.Base(source)+" "+p.Name+" "+level, func(t *testing.T) {
				t.Parallel()
				j := newJudge(t, gcn.CorpusObject(t, p, source, library, level), amdgpu.New())
				if err := j.ExecuteAll(1, p.Lanes-27, func() error { return nil }); err != nil {
					t.Error(err)
				}
				table.Add(t, p, level, j)
			})
		})
	}
}

// seeds are the programs that are generated.
func seeds() uint64 {
	if proof.IsRequested() {
		return 200
	}
	return 6
}

// TestFramesOfExecutingGeneratedKernels does the same with generated programs.
// They write what the same functions write on the host, so the code was executed
// as the hardware would.
func TestFramesOfExecutingGeneratedKernels(t *testing.T) {
	gcn.Need(t)
	var table wavecheck.Table
	t.Cleanup(func() { table.Judge(t) })
	hosts := gcn.Hosts{Dir: t.TempDir()}
	for seed := range seeds() {
		gcn.Cases(int(seed), 1, func(p gcn.Processor, level string) { //nolint:gosec // small
			t.Run(fmt.Sprint(seed, " ", p.Name, " ", level), func(t *testing.T) {
				t.Parallel()
				device, source := gcn.Program(t, p, seed, level)
				host := hosts.Build(t, source, fmt.Sprint(seed, p.Acc))
				out := filepath.Join(t.TempDir(), "k.co")
				gcn.Compile(t, p, out, []string{device}, level)
				o := gcn.Open(t, p, out)
				j := newJudge(t, o, amdgpu.New())
				items := p.Lanes - 5 - int(seed%20) //nolint:gosec // small
				if err := j.ExecuteAll(seed, items, func() error { return gcn.SameAsHost(o, host, j.State, items) }); err != nil {
					t.Error(err)
				}
				table.Add(t, p, level, j)
			})
		})
	}
}
