// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// millionSamples is a recording of a million samples with some 200,000 distinct stacks, of 64
// threads in a minute.
func millionSamples() *recording {
	r := newRecording(trace.ProfileEvent{Name: "cpu-clock", Unit: "nanoseconds"})
	random := rand.New(rand.NewPCG(1, 2))
	module := r.module("/opt/server/lib/libservice.so", 0x400000, 0x4000000)
	kernel := r.module("[kernel.kallsyms]", 0xffffffff81000000, 0xffffffff82000000)
	frames := make([]uint32, 20_000)
	for i := range frames {
		f := trace.ProfileFrame{
			PC: 0x400000 + uint64(i)*64, Module: module, ModuleOffset: uint64(i) * 64,
			Symbols: []trace.Symbol{{
				Function: fmt.Sprintf("service::component%d::Handler<std::string, int>::method%d(std::vector<int> const&)", i%97, i),
				File:     fmt.Sprintf("/src/component%d.cc", i%97), Line: i % 1000, StartFile: fmt.Sprintf("/src/component%d.cc", i%97), StartLine: i % 1000,
			}},
		}
		switch {
		case i%10 == 0:
			f.Module, f.Kernel = kernel, true
		case i%23 == 0:
			f.FoundBy = trace.ByScan
		}
		frames[i] = r.frame(f)
	}
	stop := r.stop(trace.StopOutermost, "")
	var stacks []uint32
	for range 200_000 {
		// A stack goes on from a place in another one, as calls do.
		var at uint32
		if len(stacks) > 0 {
			at = stacks[random.IntN(len(stacks))]
			for range random.IntN(12) {
				at = r.Stacks[at].Caller
			}
		}
		for range 1 + random.IntN(12) {
			key := trace.ProfileStack{Caller: at, Frame: frames[int(random.ExpFloat64()*2000)%len(frames)]}
			next, ok := r.stacks[key]
			if !ok {
				next = uint32(len(r.Stacks))
				r.stacks[key] = next
				r.Stacks = append(r.Stacks, key)
			}
			at = next
		}
		stacks = append(stacks, at)
	}
	for i := range 64 {
		r.thread(100+i/16, 100+i, fmt.Sprintf("worker-%d", i%8))
	}
	for i := range 1_000_000 {
		stack := i
		if i >= len(stacks) {
			stack = int(random.ExpFloat64()*20_000) % len(stacks)
		}
		r.Samples = append(r.Samples, trace.ProfileSample{
			Time: 1e9 + uint64(i)*60_000 + uint64(random.IntN(50_000)), Weight: 1e6, Stack: stacks[stack],
			Thread: uint32(random.IntN(8)*8 + stack%8), Stop: stop, // what a thread does is told by its name
		})
	}
	return r
}

// BenchmarkPageOfAMillionSamples writes a page, and says how long a browser takes until it is
// drawn: with UNWINDD_TESTS=all.
func BenchmarkPageOfAMillionSamples(b *testing.B) {
	r, err := NewProfile(&millionSamples().Profile)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if err := r.WritePage(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		name := filepath.Join(b.TempDir(), "page.html")
		file, err := os.Create(name)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.WritePage(file); err != nil {
			b.Fatal(err)
		}
		if err := file.Close(); err != nil {
			b.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			b.Fatal(err)
		}
		browser := oracle.Browse(b, "about:blank")
		for b.Loop() {
			browser.Go("file://" + name)
			var drawn float64
			browser.Eval(&drawn, `new Promise(done => { const look = () => document.documentElement.dataset.ready ? requestAnimationFrame(() => setTimeout(() => done(performance.now()))) : setTimeout(look, 5); look(); })`)
			b.ReportMetric(drawn, "ms-to-draw")
		}
		b.ReportMetric(float64(info.Size())/(1<<20), "MiB")
	})
}
