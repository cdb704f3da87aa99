// SPDX-License-Identifier: Apache-2.0

package target

import (
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// WithThreads returns a target with another list of threads and other information, for threads
// that a runtime schedules beside the ones of the operating system. It reads from t, and closing it
// does nothing.
func WithThreads(t Target, threads []*trace.Thread, info trace.Target) Target {
	with := &withThreads{t, threads, info}
	if sized, ok := t.(Sized); ok {
		return &sizedWithThreads{*with, sized}
	}
	return with
}

// withThreads is a target with more threads.
type withThreads struct {
	Target
	threads []*trace.Thread
	info    trace.Target
}

func (t *withThreads) Info() trace.Target       { return t.info }
func (t *withThreads) Threads() []*trace.Thread { return t.threads }
func (t *withThreads) Close() error             { return nil }

func (t *withThreads) ReadScoped(space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (int, error) {
	if s, ok := t.Target.(ScopedMemory); ok && th.Goroutine == nil {
		return s.ReadScoped(space, th, address, buf)
	}
	return t.Target.ReadMemory(space, address, buf)
}

func (t *withThreads) FromFile(address uint64) (m *Module, n uint64) {
	if f, ok := t.Target.(FileMemory); ok {
		return f.FromFile(address)
	}
	return nil, max(-address, 1)
}

func (t *withThreads) ReleasePages() {
	if p, ok := t.Target.(Paged); ok {
		p.ReleasePages()
	}
}

// sizedWithThreads is a target with more threads that knows the size of its memory.
type sizedWithThreads struct {
	withThreads
	sized Sized
}

func (t *sizedWithThreads) MemorySize() uint64 { return t.sized.MemorySize() }
