// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/kallsyms"
	"github.com/unwindd/unwindd/engine/trace"
)

// openKernelNames reads the names of the kernel's functions; nil for no file.
func openKernelNames(path string) (*kallsyms.Table, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no names were requested
	}
	return kallsyms.Open(path)
}

// recordedKernelNames returns the names in a recording that is a directory with the kernel's
// files (perf record --kcore); nil where there are none.
func (r *recording) recordedKernelNames() *kallsyms.Table {
	names, err := openKernelNames(r.file.Kallsyms())
	if err != nil {
		r.problem("%v: the kernel's code is not named", err)
		return nil
	}
	return names
}

// nameChunk is how many frames a goroutine names at a time: neighbours are of one unit.
const nameChunk = 64

// prepareNames opens the debug information of modules as they occur, while samples are walked:
// unpacking that of a C library takes longer than naming all its frames. wait ends it.
func (b *profileBuilder) prepareNames() (wait func()) {
	if b.recording.maker.Shared.Options().NoSymbols {
		return func() {}
	}
	met := make(chan framePlace, 64)
	b.met = met
	var opening sync.WaitGroup
	opening.Go(func() {
		for p := range met {
			p.names(b.recording)
		}
	})
	return sync.OnceFunc(func() {
		close(met)
		b.met = nil
		opening.Wait()
	})
}

// names returns the names of the frame.
func (p *framePlace) names(r *recording) []trace.Symbol {
	return p.module.Names(p.lookup, r.maker.Shared.Options().NoInlines)
}

// name names the frames of modules, each once, by a number of goroutines, and then the others.
func (b *profileBuilder) name(ctx context.Context, jobs int, kernel *kallsyms.Table) {
	frames := b.out.Frames
	order := make([]uint32, 0, len(frames))
	for i := range frames {
		if b.places[i].module != nil {
			order = append(order, uint32(i))
		}
	}
	slices.SortFunc(order, func(i, j uint32) int {
		p, q := &b.places[i], &b.places[j]
		if p.module != q.module {
			return cmp.Compare(p.module.ID, q.module.ID)
		}
		return cmp.Compare(p.lookup, q.lookup)
	})
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(jobs, (len(order)+nameChunk-1)/nameChunk) {
		workers.Go(func() {
			for {
				start := int(next.Add(nameChunk)) - nameChunk
				if start >= len(order) {
					return
				}
				for _, i := range order[start:min(start+nameChunk, len(order))] {
					p := &b.places[i]
					if frames[i].Device {
						// No walk reached this place, so the plugin was not asked about the
						// object.
						frames[i].Symbols = p.module.AllNames(ctx, p.lookup, b.recording.maker.Shared.Options().NoInlines)
						continue
					}
					frames[i].Symbols = p.names(b.recording)
					if symbol.IsBetterRecorded(frames[i].Symbols, p.recorded) {
						frames[i].Symbols = p.recorded
						continue
					}
					p.mayBeEqual = p.isEqual(frames[i].Symbols)
				}
			}
		})
	}
	workers.Wait()
	b.recording.generated.isComplete = true
	hasKernel := false
	names := sync.OnceValue(func() *kernelNames { return b.recording.kernelNames(kernel, b.kernel) })
	for i := range frames {
		switch f := &frames[i]; {
		case b.places[i].isNamed: // by its file
		case f.Kernel:
			hasKernel = true
			b.nameKernel(f, b.places[i].lookup, names())
		case f.Module < 0:
			b.nameJIT(f, b.places[i].lookup)
		}
	}
	if hasKernel {
		b.explainKernel(names())
	}
	b.nameBySimpleperf()
	b.recording.reportNameless()
	b.nameRecorded()
	b.chooseEqual()
}

// nameKernel names code of the kernel.
func (b *profileBuilder) nameKernel(f *trace.ProfileFrame, lookup uint64, names *kernelNames) {
	if m := b.generated.Find(lookup); m != nil {
		f.Symbols = []trace.Symbol{{Function: m.Path, Start: m.Start, HasStart: true}}
		return
	}
	if names.table == nil {
		return
	}
	if name, start, ok := names.find(lookup, f.PC, b.kernel.Find(lookup)); ok {
		f.Symbols = []trace.Symbol{{Function: name, Start: start, HasStart: true}}
	}
}

// explainKernel says why the kernel's code has no names.
func (b *profileBuilder) explainKernel(names *kernelNames) {
	for placed, index := range b.modules {
		if placed.kernel != nil && names.problem != "" && strings.HasPrefix(placed.kernel.Path, kernelName) {
			b.out.Modules[index].Problem = names.problem
		}
	}
}

// kernelName is perf's name of the kernel; the name of a symbol follows it.
const kernelName = "[kernel.kallsyms]"
