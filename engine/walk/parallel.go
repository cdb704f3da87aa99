// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"runtime"

	"github.com/unwindd/unwindd/engine/target"
)

// walkParallel walks threads by all processors, and yields their stacks in order. It is for
// stacks that take long, as those with variables do: others cost less than to hand them
// over.
func (p *Process) walkParallel(ctx context.Context, threads []*target.Thread, k *threadPass, yield func(*target.Thread, *Stack) bool) {
	ctx, cancel := context.WithCancel(ctx)
	type walked struct {
		thread *target.Thread
		stack  chan *Stack
	}
	workers := runtime.GOMAXPROCS(0)
	list := make(chan walked, workers) // bounds the stacks that wait
	busy := make(chan struct{}, workers)
	go func() {
		defer close(list)
		for _, th := range threads {
			select {
			case busy <- struct{}{}:
			case <-ctx.Done():
				return
			}
			k.begin(th)
			w := walked{th, make(chan *Stack, 1)}
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
			cancel() // those that are under way end, and no one is left waiting
		}
	}
	cancel()
}
