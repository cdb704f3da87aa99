// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/target/process"
)

// OpenProcesses opens living processes at one moment: all are stopped before any is copied, and each goes on
// as soon as its copy is there. Each is copied as OpenProcess does it; one whose language runtime turns
// out to need other memory than was copied is copied again, by itself and a little later. When a process
// was stopped is in its facts (trace.Process.Kept). More than 1024 processes are opened in groups, one after the
// other. IDs are of processes, each once.
func (e *Engine) OpenProcesses(ctx context.Context, pids []int, o OpenProcessesOptions) {
	for group := range slices.Chunk(pids, maxTogether) {
		list := make([]*living, len(group))
		for i, pid := range group {
			list[i] = &living{pid: pid, engine: e}
			if path := o.DeviceCores[pid]; path != "" {
				list[i].useDevices(path)
			}
		}
		inParallel(list, func(l *living) { l.warm(ctx) })
		stopTogether(list)
		inParallel(list, func(l *living) {
			l.finish(ctx)
			o.Each(l.pid, l.target, l.err)
		})
	}
}

// living is a process that is opened together with others.
type living struct {
	pid    int
	engine *Engine
	target *Target
	copied *process.Target
	err    error

	isManaged bool     // it has a language runtime
	pages     []uint64 // that the state of the runtime was in while the threads went on
}

// inParallel calls f with each process, on as many goroutines as there are processors.
func inParallel(list []*living, f func(*living)) {
	var all sync.WaitGroup
	next := make(chan *living)
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		all.Go(func() {
			for l := range next {
				f(l)
			}
		})
	}
	for _, l := range list {
		next <- l
	}
	close(next)
	all.Wait()
}

// stopTogether copies all processes at one moment.
func stopTogether(list []*living) {
	together := process.NewTogether(len(list))
	var all sync.WaitGroup
	for _, l := range list {
		all.Go(func() {
			m := together.Member()
			defer m.Leave()
			l.copy(m)
		})
	}
	all.Wait()
}

// useDevices has the process opened with a file of its accelerators' state.
func (l *living) useDevices(path string) {
	o := l.engine.options
	o.DeviceCore = path
	if view, err := l.engine.With(o); err != nil {
		l.err = err
	} else {
		l.engine = view // its targets are closed by who has them
	}
}

// warm opens the process for the first time, if it has a language runtime, while its threads go on. The
// copy is not kept: there may be many.
func (l *living) warm(ctx context.Context) {
	if l.err = cmp.Or(l.err, ctx.Err()); l.err != nil || len(l.engine.RuntimesOf(l.pid)) == 0 {
		return
	}
	own, copied, err := l.engine.openProcess(l.pid, nil, nil)
	if err != nil {
		return // copying it has an error, too
	}
	defer own.Close()
	if l.isManaged = own.hasState(); l.isManaged {
		ctx, cancel := context.WithTimeout(ctx, warmTime)
		defer cancel()
		l.pages = own.warm(ctx, copied)
	}
}

// copy copies the process when all others are stopped, too.
func (l *living) copy(m *process.Member) {
	switch {
	case l.err != nil:
	case l.isManaged:
		l.target, l.copied, l.err = l.engine.openWith(l.pid, l.pages, m)
	default:
		l.target, l.copied, l.err = l.engine.openProcess(l.pid, m, nil)
	}
}

// finish reads the state of the language runtime from the copy.
func (l *living) finish(ctx context.Context) {
	if l.err != nil || !l.isManaged {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, warmTime)
	defer cancel()
	if missing := l.target.readStill(ctx, l.copied); len(missing) > 0 {
		_ = l.target.Close()
		l.target, l.err = l.engine.openStill(ctx, l.pid, withPages(l.pages, missing))
	}
}
