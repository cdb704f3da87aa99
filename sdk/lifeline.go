// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/stats"
)

// lifeline ends a plugin whose engine is gone. An engine that was killed sends nothing;
// but its connection ends, and the engine never closes its only one otherwise.
type lifeline struct {
	mu          sync.Mutex
	connections int
	waiting     *time.Timer
	gone        func()
}

// begin calls gone when no engine connects in time, or when the last
// connection has ended.
func (l *lifeline) begin(timeout time.Duration, gone func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = gone
	l.waiting = time.AfterFunc(timeout, gone)
}

// HandleConn counts connections.
func (l *lifeline) HandleConn(_ context.Context, s stats.ConnStats) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch s.(type) {
	case *stats.ConnBegin:
		l.connections++
		l.waiting.Stop()
	case *stats.ConnEnd:
		l.connections--
		if l.connections == 0 {
			// The server waits for this handler when it stops.
			go l.gone()
		}
	}
}

// TagConn, TagRPC and HandleRPC do nothing: only connections matter.
func (l *lifeline) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (l *lifeline) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (l *lifeline) HandleRPC(context.Context, stats.RPCStats)                         {}
