// SPDX-License-Identifier: Apache-2.0

// Package joined makes one target of a process and of what its accelerators left in a core of their
// own: the threads, code and memory of both, whatever each was read from.
package joined

import (
	"errors"
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// Target is a process with its accelerators. It implements target.Target.
type Target struct {
	host, devices target.Target
	finder        object.Finder
	info          trace.Target
	own           []*trace.Thread // of devices
	threads       []*trace.Thread
	modules       []*target.Module
}

var (
	_ target.FileMemory   = (*Target)(nil)
	_ target.ScopedMemory = (*Target)(nil)
	_ target.Paged        = (*Target)(nil)
	_ target.Mapper       = (*Target)(nil)
	_ target.WithStart    = (*Target)(nil)
	_ target.Sized        = (*sized)(nil)
)

// New joins a process and its accelerators. finder finds the files of the process. Closing the result
// closes both.
func New(host, devices target.Target, finder object.Finder) target.Target {
	t := &Target{host: host, devices: devices, finder: finder, own: devices.Threads()}
	t.modules = slices.Concat(host.Modules(), devices.Modules())
	target.SortModules(t.modules)
	t.addThreads()
	t.info = host.Info()
	other := devices.Info()
	if t.info.Kind == trace.ELFCore {
		t.info.Kind = other.Kind
	}
	t.info.Problems = slices.Concat(t.info.Problems, other.Problems)
	t.info.Unread = t.info.Unread || other.Unread
	t.info.Devices = trace.Devices{
		Agents:     slices.Concat(t.info.Devices.Agents, other.Devices.Agents),
		Queues:     slices.Concat(t.info.Devices.Queues, other.Devices.Queues),
		Dispatches: slices.Concat(t.info.Devices.Dispatches, other.Devices.Dispatches),
	}
	if h, ok := host.(target.Sized); ok {
		return &sized{t, h}
	}
	return t
}

// Start is how the process was started.
func (t *Target) Start() target.Start {
	if host, ok := t.host.(target.WithStart); ok {
		return host.Start()
	}
	return target.Start{}
}

// addThreads lists the threads of the process and, behind them, the accelerators'. Two threads never
// have one ID.
func (t *Target) addThreads() {
	t.threads = slices.Grow(slices.Clone(t.host.Threads()), len(t.own))
	taken := make(map[string]bool, len(t.threads))
	for _, th := range t.threads {
		taken[th.ID] = true
	}
	ids := HostThreads(t.host)
	launches := map[*trace.Launch]*trace.Launch{}
	list := make([]trace.Thread, len(t.own))
	for i, own := range t.own {
		th := &list[i]
		*th = *own
		th.Handle = uint64(len(t.threads))
		if taken[th.ID] {
			th.ID = th.Arch + "-" + th.ID
		}
		th.LaunchedBy = launchIn(own.LaunchedBy, ids, launches)
		t.threads = append(t.threads, th)
	}
}

// launchIn returns a launch with the ID that the launching thread has in the process's target. known
// has the launches so far: threads share them.
func launchIn(l *trace.Launch, ids map[string]string, known map[*trace.Launch]*trace.Launch) *trace.Launch {
	if l == nil || ids[l.Thread] == l.Thread || ids[l.Thread] == "" {
		return l
	}
	if known[l] == nil {
		own := *l
		own.Thread = ids[l.Thread]
		known[l] = &own
	}
	return known[l]
}

// HostThreads returns the IDs of a process's threads by the IDs that the process itself knows them by,
// which differ where it has a namespace of its own.
func HostThreads(host target.Target) map[string]string {
	ids := map[string]string{}
	for _, th := range host.Threads() {
		if th.OwnID == 0 {
			ids[th.ID] = th.ID
		} else {
			ids[strconv.FormatInt(th.OwnID, 10)] = th.ID
		}
	}
	return ids
}

// Launchers returns the IDs of the threads that launched threads of accelerators, as these recorded
// them.
func Launchers(devices target.Target) map[string]bool {
	ids := map[string]bool{}
	for _, th := range devices.Threads() {
		if l := th.LaunchedBy; l != nil && l.Thread != "" {
			ids[l.Thread] = true
		}
	}
	return ids
}

// Info describes the process, with what its accelerators executed.
func (t *Target) Info() trace.Target { return t.info }

// Modules returns the code objects of both, by address.
func (t *Target) Modules() []*target.Module { return t.modules }

// Threads returns the threads of the process, then its accelerators'.
func (t *Target) Threads() []*trace.Thread { return t.threads }

// Finder returns the finder of the process's files.
func (t *Target) Finder() object.Finder { return t.finder }

// ReadMemory reads memory that the accelerators have, and else that of the process. What both have,
// they share: the accelerators' copy is that of the moment at which they stopped.
func (t *Target) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (n int, err error) {
	if space != locexpr.DefaultSpace {
		if n, err = t.devices.ReadMemory(space, address, buf); err == nil || n > 0 {
			return n, err
		}
		return t.host.ReadMemory(space, address, buf)
	}
	for n < len(buf) {
		first, second := t.host, t.devices
		if mapped, _ := t.devices.Mapped(address + uint64(n)); mapped {
			first, second = second, first
		}
		more, err := first.ReadMemory(space, address+uint64(n), buf[n:])
		if more == 0 {
			more, _ = second.ReadMemory(space, address+uint64(n), buf[n:])
		}
		if more == 0 {
			return n, err
		}
		n += more
	}
	return n, nil
}

// ReadScoped reads a thread's instance of an address space.
func (t *Target) ReadScoped(space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (int, error) {
	if space == locexpr.DefaultSpace || th == nil {
		return t.ReadMemory(space, address, buf)
	}
	state := t.host
	if t.isOfDevices(th) {
		state = t.devices
	}
	if s, ok := state.(target.ScopedMemory); ok {
		return s.ReadScoped(space, th, address, buf)
	}
	return t.ReadMemory(space, address, buf)
}

// isOfDevices reports whether a thread is the accelerators', whose instances of address spaces are where
// its Memory places them.
func (t *Target) isOfDevices(th *trace.Thread) bool {
	first := uint64(len(t.threads) - len(t.own))
	return th.Handle >= first && th.Handle-first < uint64(len(t.own)) && th.Goroutine == nil
}

// Mapped reports whether either has an address mapped.
func (t *Target) Mapped(address uint64) (mapped, executable bool) {
	if mapped, executable = t.host.Mapped(address); mapped {
		return mapped, executable
	}
	return t.devices.Mapped(address)
}

// FromFile returns the module whose file has memory that neither has itself.
func (t *Target) FromFile(address uint64) (m *target.Module, n uint64) {
	state := t.host
	if mapped, _ := t.devices.Mapped(address); mapped {
		state = t.devices
	}
	if f, ok := state.(target.FileMemory); ok {
		return f.FromFile(address)
	}
	return nil, max(-address, 1)
}

// ReleasePages frees the pages of both that were read.
func (t *Target) ReleasePages() {
	for _, state := range []target.Target{t.host, t.devices} {
		if p, ok := state.(target.Paged); ok {
			p.ReleasePages()
		}
	}
}

// Around returns the mappings of the process around an address, as far as they were recorded.
func (t *Target) Around(address uint64) (below, containing, above *target.Mapping) {
	if m, ok := t.host.(target.Mapper); ok {
		return m.Around(address)
	}
	return nil, nil, nil
}

// Close closes both.
func (t *Target) Close() error { return errors.Join(t.host.Close(), t.devices.Close()) }

// sized is a Target whose process knows the size of its memory.
type sized struct {
	*Target
	host target.Sized
}

func (t *sized) MemorySize() uint64 {
	size := t.host.MemorySize()
	if d, ok := t.devices.(target.Sized); ok {
		size += d.MemorySize()
	}
	return size
}
