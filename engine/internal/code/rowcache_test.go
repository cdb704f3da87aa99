// SPDX-License-Identifier: Apache-2.0

package code

import (
	"errors"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// newLibrary is a library whose architectures are in this process.
func newLibrary(t testing.TB, bytes uint64, archs ...sdk.Architecture) *Library {
	t.Helper()
	plugins, err := plugin.NewManager(plugin.Options{InProcess: archs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(plugins.Close)
	l := NewLibrary(plugins, bytes)
	t.Cleanup(l.Close)
	return l
}

// moduleOf is a module of a file, where the file says that it lies.
func moduleOf(t testing.TB, store *object.Store, path string) *target.Module {
	t.Helper()
	o, err := store.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	m := &target.Module{Module: trace.Module{Path: path, Arch: "x86_64", File: path, BuildID: o.BuildID()}, Object: o}
	for _, s := range o.Segments() {
		m.Segments = append(m.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address, Executable: s.Executable()})
	}
	return m
}

const crash = "../../../examples/crash/server"

// startsOf are where the functions of an object begin that have an FDE.
func startsOf(t testing.TB, o *Object) (list []uint64) {
	t.Helper()
	if err := o.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, table := range o.rows.frames {
		for fde, err := range table.FDEs() {
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, fde.Start)
		}
	}
	return list
}

// TestRowsAreFoundOnce asks for rows of the crash example again, and for an address
// of which there is none.
func TestRowsAreFoundOnce(t *testing.T) {
	m := newLibrary(t, 0, x86_64.New()).Load(moduleOf(t, nil, crash), Loading{})
	defer m.Close()
	o := m.Code
	found := 0
	for _, address := range startsOf(t, o) {
		first, err := m.Row(t.Context(), address, true)
		var none *NoRow
		if errors.As(err, &none) {
			continue
		}
		again, err := m.Row(t.Context(), address, true)
		if err != nil || again != first {
			t.Errorf("%#x: another row, %v", address, err)
		}
		key := rowKey{address, true}
		if kept, _ := o.rows.found.find(key); kept != first || o.library.rows.slot(o.number, key).Load() != first {
			t.Errorf("%#x is not kept, or not in its slot", address)
		}
		found++
	}
	if found < 5 {
		t.Errorf("%d rows", found)
	}
	for range 2 {
		var none *NoRow
		if _, err := m.Row(t.Context(), 1, true); !errors.As(err, &none) {
			t.Errorf("address 1: %v", err)
		}
	}
	if r, _ := o.rows.found.find(rowKey{1, true}); r == nil || r.none == nil {
		t.Error("that there is no row at address 1 was forgotten")
	}
}

// TestRowsThatShareASlot fills one slot with rows of two addresses in turn.
func TestRowsThatShareASlot(t *testing.T) {
	m := newLibrary(t, 0, x86_64.New()).Load(moduleOf(t, nil, crash), Loading{})
	defer m.Close()
	o := m.Code
	key := rowKey{startsOf(t, o)[1], true}
	want, err := m.Row(t.Context(), key.address, true)
	if err != nil {
		t.Fatal(err)
	}
	slot := o.library.rows.slot(o.number, key)
	for _, other := range []*Row{
		{object: o, key: rowKey{key.address, false}}, {object: o, key: rowKey{key.address + 1, true}}, {object: &Object{}, key: key}, nil,
	} {
		slot.Store(other)
		if got, err := m.Row(t.Context(), key.address, true); err != nil || got != want {
			t.Errorf("with %+v in the slot: %+v, %v", other, got, err)
		}
	}
}

// TestRowsOfAClosedObjectAreForgotten walks code that is one target's alone: when that is
// closed, no row may keep what the target has.
func TestRowsOfAClosedObjectAreForgotten(t *testing.T) {
	l, store := newLibrary(t, 0, x86_64.New()), object.NewStore()
	m := l.Load(moduleOf(t, store, crash), Loading{IsAlone: true})
	if rowsAndNames(t, m) == 0 {
		t.Fatal("the file has no rows")
	}
	m.Close()
	for i := range l.rows {
		if r := l.rows[i].Load(); r != nil {
			t.Fatalf("the cache has a row at %#x of an object that is closed", r.key.address)
		}
	}
}

// TestCompiledRowsKnowWhatAWalkNeeds holds for every architecture, whatever the
// numbers of its registers are.
func TestCompiledRowsKnowWhatAWalkNeeds(t *testing.T) {
	manager, err := plugin.NewManager(plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New(), visa.New()}})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	for name, want := range map[string][]uint64{
		"x86_64": {16, 7, 6, 3, 12, 13, 14, 15}, // rip, rsp, rbp, rbx, r12 to r15
		"amdgpu": {16, 64, 65},                  // PC, SGPR32, SGPR33
		"visa":   nil,
	} {
		a, err := manager.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		m := newMachine(a)
		t.Logf("%s: %v", name, m.Compiler.Columns())
		for i, number := range want {
			if got, ok := m.Compiler.Index(number); i < 3 && (!ok || got != i) || !ok {
				t.Errorf("%s: register %d has index %d, %v", name, number, got, ok)
			}
		}
		if len(m.Compiler.Columns()) > cfi.MaxColumns {
			t.Errorf("%s: %d columns", name, len(m.Compiler.Columns()))
		}
	}
}
