// SPDX-License-Identifier: Apache-2.0

package rocm_test

import (
	"strings"
	"testing"
)

// TestScratch finds where the private memory of a wave is, or says why that is not
// known. The wave is in slot 3 of shader engine 2, and memory is for 32 waves of
// one unit each.
func TestScratch(t *testing.T) {
	const location, slot, engine = 0x7300_0000_0000, 3, 2
	type parts struct {
		note, queue []byte // queue begins at write_dispatch_id
		flat        uint64
	}
	for _, c := range []struct {
		what      string
		processor uint32
		change    func(*parts)
		want      uint64 // from the location on
		problem   string
	}{
		{"gfx9", 90010, nil, (32/4*engine + slot) * 1024, ""},
		{"no shader engine", 90010, func(p *parts) { le.PutUint32(p.note[56+100:], 0) }, 0, "not divided evenly among 0 shader engines"},
		{"arrays of no engine", 90010, func(p *parts) { le.PutUint32(p.note[56+104:], 0) }, 0, "not divided evenly among 0 shader engines"},
		{"waves that cannot be divided", 90010, func(p *parts) { p.queue[84] = 31 }, 0, "memory for 31 waves is not divided evenly among 4 shader engines"},
		{"no memory", 90010, func(p *parts) { le.PutUint32(p.queue[84:], 32) }, 0, ""},
		{"a location that cannot be", 90010, func(p *parts) { le.PutUint64(p.queue[104:], 1<<63) }, 0, "which cannot be"},
		{"a size that cannot be", 90010, func(p *parts) { le.PutUint64(p.queue[112:], 1<<60) }, 0, "which cannot be"},
		{"gfx11", 110000, func(p *parts) { p.flat = location + (32*engine+slot)*256 }, (32*engine + slot) * 256, ""},
		{"another FLAT_SCRATCH", 110000, func(p *parts) { p.flat = location }, 0, "the private memory of 1 wave is left out: it should be at 0x730000004300, but FLAT_SCRATCH of w1 is 0x730000000000"},
	} {
		m := &testMemory{}
		testHost(m, 10)
		p := &parts{testNote(c.processor, 1, 1), m.parts[queueAt-72], 0}
		if c.change != nil {
			c.change(p)
		}
		hardware := map[int]uint32{9: uint32(p.flat), 10: uint32(p.flat >> 32)}
		ttmps := map[int]uint32{6: 1}
		if c.processor == 90010 {
			m.put(saveAt, testArea([]uint32{1<<31 | 3 | 7<<6, 1<<17 | 1<<16 | 1<<15 | engine<<9 | slot}, testRecord(32*256, 112*4, nil, ttmps, 0, 64)))
		} else {
			m.put(saveAt, testArea([]uint32{1<<31 | 1<<24 | 3, 0, 1<<12 | 1<<29 | 1<<11 | engine<<24 | slot}, testRecord(32*128, 512, hardware, ttmps, 0, 0)))
		}
		a := readCore(t, m, p.note)
		problems := strings.Join(a.Problems, "\n")
		if len(a.Threads) != 1 || c.problem == "" && problems != "" || !strings.Contains(problems, c.problem) {
			t.Errorf("%s: %d waves, problems %q, expected %q", c.what, len(a.Threads), problems, c.problem)
			continue
		}
		memory := a.Threads[0].Memory
		switch {
		case c.want == 0 && len(memory) > 0:
			t.Errorf("%s: memory %+v, expected none", c.what, memory)
		case c.want > 0 && (len(memory) != 1 || memory[0].Space != 6 || memory[0].Address != location+c.want || memory[0].Size == 0):
			t.Errorf("%s: memory %+v, expected it at %#x", c.what, memory, location+c.want)
		}
	}
}

// TestApertures are where generic addresses reach other memory, where the driver says so.
func TestApertures(t *testing.T) {
	for _, c := range []struct {
		processor uint32
		change    func(agent []byte)
		want      int
	}{
		{90010, func([]byte) {}, 2},
		{90010, func(a []byte) { clear(a[8:24]) }, 1},
		{90010, func(a []byte) { clear(a[24:40]) }, 1},
		{90010, func(a []byte) { clear(a[8:40]) }, 0},
		{120500, func([]byte) {}, 1}, // what is behind that of private memory is another thing
	} {
		m := &testMemory{}
		testHost(m, 12)
		note := testNote(c.processor, 1, 1)
		c.change(note[56:])
		if c.processor == 90010 {
			m.put(saveAt, testArea([]uint32{1<<31 | 3 | 7<<6, 1<<17 | 1<<16}, testRecord(32*256, 112*4, nil, map[int]uint32{6: 1}, 0, 64)))
		} else {
			m.put(saveAt, testArea([]uint32{1<<31 | 1<<24, 0, 1<<12 | 1<<13}, make([]byte, 16*128+512+512)))
		}
		if a := readCore(t, m, note); len(a.Threads) != 1 || len(a.Threads[0].Spaces) != c.want {
			t.Errorf("version %d: %+v, problems %q, expected %d spaces", c.processor, a.Threads, a.Problems, c.want)
		}
	}
}
