// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"runtime"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// walkParallel walks threads on all processors, and yields their stacks in order. It is for
// stacks that take long, such as stacks with variables: others cost less than handing them
// over.
func (p *Process) walkParallel(ctx context.Context, threads *target.ThreadList, k *threadPass, yield func(*trace.Thread, *trace.Stack) bool) {
	ctx, cancel := context.WithCancel(ctx)
	type walked struct {
		thread *trace.Thread
		stack  chan *trace.Stack
	}
	workers := runtime.GOMAXPROCS(0)
	list := make(chan walked, workers) // bounds the pending stacks
	busy := make(chan struct{}, workers)
	go func() {
		defer close(list)
		for _, th := range threads.All() {
			select {
			case busy <- struct{}{}:
			case <-ctx.Done():
				return
			}
			k.begin(th)
			w := walked{th, make(chan *trace.Stack, 1)}
			go func() {
				w.stack <- p.Walk(ctx, th)
				<-busy
			}()
			list <- w
		}
	}()
	isDone := false
	for w := range list {
		stack := <-w.stack
		if isDone = isDone || ctx.Err() != nil || !yield(w.thread, stack); isDone {
			cancel() // walks in progress end, and no goroutine is left waiting
		}
	}
	cancel()
}
