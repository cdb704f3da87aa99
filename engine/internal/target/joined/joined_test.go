// SPDX-License-Identifier: Apache-2.0

package joined

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// made is a target of a test: memory by space and address.
type made struct {
	info    trace.Target
	threads []*trace.Thread
	modules []*target.Module
	memory  map[locexpr.AddressSpace]map[uint64]byte
	closed  int
}

func (m *made) Info() trace.Target        { return m.info }
func (m *made) Modules() []*target.Module { return m.modules }
func (m *made) Threads() []*trace.Thread  { return m.threads }
func (m *made) Close() error              { m.closed++; return nil }

func (m *made) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	for i := range buf {
		b, ok := m.memory[space][address+uint64(i)]
		if !ok {
			return i, fmt.Errorf("%w: %#x", target.ErrNoMemory, address+uint64(i))
		}
		buf[i] = b
	}
	return len(buf), nil
}

func (m *made) ReadScoped(space locexpr.AddressSpace, th *trace.Thread, address uint64, buf []byte) (int, error) {
	if space == locexpr.DefaultSpace {
		return m.ReadMemory(space, address, buf)
	}
	return target.ReadPlaced(m, th, space, address, buf)
}

func (m *made) Mapped(address uint64) (mapped, executable bool) {
	_, mapped = m.memory[0][address]
	return mapped, mapped
}

func (m *made) MemorySize() uint64 { return uint64(len(m.memory[0])) }

func bytesAt(address uint64, text string) map[uint64]byte {
	m := map[uint64]byte{}
	for i := range text {
		m[address+uint64(i)] = text[i]
	}
	return m
}

func segment(path string, start uint64) *target.Module {
	return &target.Module{Module: trace.Module{Path: path, Segments: []trace.Segment{{Start: start, Size: 16}}}}
}

// process is a process whose threads 42 and 43 have other IDs in their namespace, and accelerator is
// what its accelerator left.
func process() *made {
	return &made{
		info: trace.Target{Kind: trace.ELFCore, Path: "core.42", Signal: 6, Problems: []string{"a"}},
		threads: []*trace.Thread{
			{Handle: 0, ID: "42", OwnID: 7}, {Handle: 1, ID: "43", OwnID: 8}, {Handle: 2, ID: "d0"},
		},
		modules: []*target.Module{segment("host", 0x5000)},
		memory:  map[locexpr.AddressSpace]map[uint64]byte{0: bytesAt(0x100, "hosthosthost")},
	}
}

func accelerator() *made {
	launch := &trace.Launch{Thread: "8", Evidence: trace.LaunchQueue}
	return &made{
		info: trace.Target{
			Kind: "device-core", Path: "dump.42", Problems: []string{"b"}, Unread: true,
			Devices: trace.Devices{Agents: []sdk.TargetAgent{{ID: "0"}}, Dispatches: []sdk.TargetDispatch{{ID: "1"}}},
		},
		threads: []*trace.Thread{
			{Handle: 0, ID: "d0", Arch: "device", Wave: &sdk.Wave{}, LaunchedBy: launch, Memory: []sdk.SpaceMemory{{Space: 5, Size: 1, Into: 9}}},
			{Handle: 1, ID: "d1", Arch: "device", Wave: &sdk.Wave{}, LaunchedBy: launch, Memory: []sdk.SpaceMemory{{Space: 5, Size: 1, Address: 2, Into: 9}}},
			{Handle: 2, ID: "d2", Arch: "device", Wave: &sdk.Wave{}, LaunchedBy: &trace.Launch{Thread: "99", Evidence: trace.LaunchQueue}},
		},
		modules: []*target.Module{segment("kernel", 0x4000)},
		memory:  map[locexpr.AddressSpace]map[uint64]byte{0: bytesAt(0x104, "gpu"), 9: bytesAt(0, "file")},
	}
}

func TestThreadsOfBoth(t *testing.T) {
	state := New(process(), accelerator(), object.Finder{})
	var got []string
	for i, th := range state.Threads() {
		if th.Handle != uint64(i) {
			t.Errorf("thread %s has handle %d, expected %d", th.ID, th.Handle, i)
		}
		text := th.ID
		if th.LaunchedBy != nil {
			text += " by " + th.LaunchedBy.Thread
		}
		got = append(got, text)
	}
	want := []string{"42", "43", "d0", "device-d0 by 43", "d1 by 43", "d2 by 99"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	threads := state.Threads()
	if threads[3].LaunchedBy != threads[4].LaunchedBy {
		t.Error("threads of one launch have two")
	}
	if ids := Launchers(accelerator()); len(ids) != 2 || !ids["8"] || !ids["99"] {
		t.Errorf("launchers %v", ids)
	}
	buf := make([]byte, 1)
	for i, want := range map[int]string{3: "f", 4: "l"} {
		if _, err := state.(target.ScopedMemory).ReadScoped(5, threads[i], 0, buf); err != nil || string(buf) != want {
			t.Errorf("thread %d reads %q, %v, expected %q", i, buf, err, want)
		}
	}
}

// TestMemoryOfBoth reads what one has, what both have, and from what the accelerator has on into what
// the process has. A read is of the one that its first byte is of, as far as that goes.
func TestMemoryOfBoth(t *testing.T) {
	state := New(process(), accelerator(), object.Finder{})
	for _, c := range []struct {
		space   locexpr.AddressSpace
		address uint64
		size    int
		want    string
	}{
		{0, 0x100, 4, "host"},
		{0, 0x104, 3, "gpu"},
		{0, 0x102, 8, "sthostho"},
		{0, 0x105, 4, "puth"},
		{0, 0x10a, 4, "st"},
		{9, 1, 3, "ile"},
		{8, 0, 1, ""},
	} {
		buf := make([]byte, c.size)
		n, err := state.ReadMemory(c.space, c.address, buf)
		if string(buf[:n]) != c.want || (err == nil) != (n == c.size) || err != nil && !errors.Is(err, target.ErrNoMemory) {
			t.Errorf("space %d, %#x: %q, %v, expected %q", c.space, c.address, buf[:n], err, c.want)
		}
	}
	for address, want := range map[uint64]bool{0x100: true, 0x105: true, 0x200: false} {
		if mapped, _ := state.Mapped(address); mapped != want {
			t.Errorf("%#x is mapped: %v", address, mapped)
		}
	}
}

func TestInfoOfBoth(t *testing.T) {
	host, devices := process(), accelerator()
	state := New(host, devices, object.Finder{Sysroot: "/s"})
	info := state.Info()
	if info.Kind != "device-core" || info.Path != "core.42" || info.Signal != 6 || !info.Unread || strings.Join(info.Problems, "") != "ab" ||
		len(info.Devices.Agents) != 1 || len(info.Devices.Dispatches) != 1 {
		t.Errorf("%+v", info)
	}
	if m := state.Modules(); len(m) != 2 || m[0].Path != "kernel" || m[0].ID != 0 || m[1].ID != 1 {
		t.Errorf("%d modules", len(m))
	}
	if s, ok := state.(target.Sized); !ok || s.MemorySize() != 15 {
		t.Error("its size is not that of both")
	}
	if f, ok := state.(interface{ Finder() object.Finder }); !ok || f.Finder().Sysroot != "/s" {
		t.Error("its files are not those of the process")
	}
	host.info.Kind = trace.Snapshot
	if info := New(host, devices, object.Finder{}).Info(); info.Kind != trace.Snapshot {
		t.Errorf("a snapshot became %s", info.Kind)
	}
	if err := state.Close(); err != nil || host.closed != 1 || devices.closed != 1 {
		t.Errorf("closed %d and %d times, %v", host.closed, devices.closed, err)
	}
}
