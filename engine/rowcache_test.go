package engine

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestRowsAreFoundOnce asks for rows of the crash example's modules again, and
// for an address of which there is none.
func TestRowsAreFoundOnce(t *testing.T) {
	core := openCrash(t)
	for _, th := range core.Threads() {
		core.Walk(context.Background(), th)
	}
	found := 0
	for _, m := range core.modules {
		for key, s := range m.rows {
			again, err := core.row(context.Background(), m, key.address, key.exact)
			var none *noRow
			if s.none != nil && errors.As(err, &none) {
				continue
			}
			if err != nil || again != s {
				t.Errorf("%s: %#x: another row, %v", m.Path, key.address, err)
			}
			if slot := core.rows.slot(m, key); slot.Load() != s {
				t.Errorf("%s: %#x is not in its slot", m.Path, key.address)
			}
			found++
		}
	}
	if found < 10 {
		t.Errorf("%d rows", found)
	}
	m := core.modules[0]
	for range 2 {
		var none *noRow
		if _, err := core.row(context.Background(), m, 1, true); !errors.As(err, &none) {
			t.Errorf("address 1: %v", err)
		}
	}
	if s := m.rows[rowKey{1, true}]; s == nil || s.none == nil {
		t.Error("that there is no row at address 1 was forgotten")
	}
}

// TestRowsThatShareASlot fills one slot with rows of two addresses in turn.
func TestRowsThatShareASlot(t *testing.T) {
	core := openCrash(t)
	frames := core.Walk(context.Background(), core.Threads()[0]).Frames
	var m *module
	for _, mod := range core.modules {
		if mod.Module == frames[1].Module {
			m = mod
		}
	}
	key := rowKey{frames[1].ModuleOffset, false}
	want, err := core.row(context.Background(), m, key.address, false)
	if err != nil {
		t.Fatal(err)
	}
	slot := core.rows.slot(m, key)
	for _, other := range []*rowSource{
		{module: m, key: rowKey{key.address, true}}, {module: m, key: rowKey{key.address + 1, false}}, {module: &module{}, key: key}, nil,
	} {
		slot.Store(other)
		if got, err := core.row(context.Background(), m, key.address, false); err != nil || got != want {
			t.Errorf("with %+v in the slot: %+v, %v", other, got, err)
		}
	}
}

// TestConcurrentWalksAgree is for the race detector.
func TestConcurrentWalksAgree(t *testing.T) {
	core := openCrash(t)
	var wg sync.WaitGroup
	stacks := make([][][]uint64, 4)
	for i := range stacks {
		wg.Go(func() {
			for stack := range core.Stacks(context.Background()) {
				stacks[i] = append(stacks[i], pcs(stack))
			}
		})
	}
	wg.Wait()
	for _, s := range stacks[1:] {
		if diff := cmp.Diff(stacks[0], s); diff != "" {
			t.Error(diff)
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
		t.Logf("%s: %v", name, m.compiler.Columns())
		for i, number := range want {
			if got, ok := m.compiler.Index(number); i < 3 && (!ok || got != i) || !ok {
				t.Errorf("%s: register %d has index %d, %v", name, number, got, ok)
			}
		}
		if len(m.compiler.Columns()) > cfi.MaxColumns {
			t.Errorf("%s: %d columns", name, len(m.compiler.Columns()))
		}
	}
}
