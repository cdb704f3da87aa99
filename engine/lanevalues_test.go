// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// TestVariablesOfLanesWhereverTheyAre executes the kernel instruction by instruction: each
// lane, where it executes or waits, has the values that its work-item has, or none.
func TestVariablesOfLanesWhereverTheyAre(t *testing.T) {
	for _, c := range []struct {
		processor string
		lanes     int
		vectors   uint32
	}{{"gfx90a", 64, 2560}, {"gfx1030", 32, 1536}} {
		t.Run(fmt.Sprintf("wave%d", c.lanes), func(t *testing.T) {
			d := newDivergent(t, c.processor, c.lanes)
			e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{amdgpu.New()}}, Locals: &trace.ValueLimits{}})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			d.engine = e
			random := rand.New(rand.NewSource(2))
			known := map[trace.LaneState]map[string]int{trace.LaneActive: {}, trace.LaneInactive: {}}
			for range 6 {
				worn := make([]uint32, c.lanes)
				for i := range worn {
					worn[i] = uint32(random.Intn(30))
				}
				w := d.wave(random.Uint64()&(^uint64(0)>>(64-c.lanes)), func(lane int) uint32 { return worn[lane] })
				for done := false; !done; {
					r := d.registers(w)
					for i := range 16 {
						r.Set(c.vectors+uint32(i), w.Vector(i))
					}
					tg, s := d.walk(r)
					for lane := range uint32(c.lanes) {
						g := laneOf(t, &s.Frames[0], lane)
						one, ok := s.Lane(lane)
						if !ok {
							continue
						}
						want := map[string]string{"w": fmt.Sprint(worn[lane]), "id": fmt.Sprint(lane), "wear": fmt.Sprint(worn[lane])}
						levels := one.Frames[0].Locals()
						if g.HasPC && len(levels) != len(g.Symbols) {
							t.Fatalf("at %#x, lane %d, %s at %#x, in %v: variables of %d functions", w.PC, lane, g.State, g.PC, names(g.Symbols), len(levels))
						}
						for _, list := range levels {
							for _, v := range list {
								if v.Type != "int" || v.Status == trace.ValueOptimizedOut {
									continue
								}
								if known[g.State] == nil || v.Text != want[v.Name] {
									t.Fatalf("at %#x, lane %d, %s at %#x: %s = %s (%s %s), expected %s", w.PC, lane, g.State, g.PC, v.Name, v.Text, v.Status, v.Problem, want[v.Name])
								}
								known[g.State][v.Name]++
							}
						}
					}
					tg.Close()
					if done, err = w.Step(); err != nil {
						t.Fatal(err)
					}
				}
			}
			t.Log(known)
			if known[trace.LaneActive]["w"] == 0 || known[trace.LaneInactive]["w"] == 0 || known[trace.LaneInactive]["wear"] == 0 {
				t.Errorf("expected values of lanes that execute and of others: %v", known)
			}
		})
	}
}
