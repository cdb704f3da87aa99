// SPDX-License-Identifier: Apache-2.0

package perfdata

import "testing"

// TestDataSources has the values in perf's table for Intel (tools/perf/util/mem-events.c and
// arch/x86/events/intel/ds.c), and values of newer processors, which tell levels by number.
func TestDataSources(t *testing.T) {
	const load, store, hit, miss = 2, 4, 2 << 5, 4 << 5
	for _, c := range []struct {
		source                       DataSource
		operation, level, snoop, tlb string
		isLocked                     bool
	}{
		{0x68100142, "load", "L1 hit", "none", "L1 or L2 hit", false},
		{load | hit | 0x80<<5 | 0x10<<19, "load", "local RAM hit", "HitM", "", false},
		{load | hit | 0x40<<5 | 3<<33 | 4<<19, "load", "L3 hit", "hit", "", false},
		{load | hit | 0x40<<5 | 3<<33 | 1<<37 | 2<<38, "load", "remote L3 hit", "peer", "", false},
		{load | miss | 0x8<<5, "load", "L1 miss", "", "", false},
		{load | hit | 9<<33, "load", "CXL hit", "", "", false},
		{store | hit | 8<<5 | 2<<24 | (2|0x10)<<26, "store", "L1 hit", "", "L2 hit", true},
		{load | 1<<5 | 1<<19 | 1<<24 | 1<<26, "load", "", "", "", false},
		{0, "", "", "", "", false},
	} {
		d := c.source
		if d.Operation() != c.operation || d.Level() != c.level || d.Snoop() != c.snoop || d.TLB() != c.tlb || d.IsLocked() != c.isLocked {
			t.Errorf("%#x: %q %q %q %q %v, expected %q %q %q %q %v", uint64(d), d.Operation(), d.Level(), d.Snoop(), d.TLB(), d.IsLocked(), c.operation, c.level, c.snoop, c.tlb, c.isLocked)
		}
	}
}
