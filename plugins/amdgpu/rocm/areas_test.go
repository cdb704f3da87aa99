// SPDX-License-Identifier: Apache-2.0

package rocm_test

import (
	"strings"
	"testing"
)

// TestAreas reads the save areas of a queue of several XCCs whose note does not say where
// they are, by what their headers say.
func TestAreas(t *testing.T) {
	const state, word = 1<<31 | 3 | 7<<6, 1<<17 | 1<<16 // gfx942: 32 registers, one group of one wave
	const agentAt, queueAt64 = 40 + 16, 40 + 16 + 128
	type parts struct {
		m    *testMemory
		note []byte
	}
	setSize := func(p *parts, n uint32) { le.PutUint32(p.note[queueAt64+56:], n) }
	setCount := func(p *parts, n uint32) { le.PutUint32(p.note[agentAt+108:], n) }
	header := func(p *parts, i int) []byte { return p.m.parts[saveAt+uint64(i)*saveSize] }
	used := func(p *parts) uint32 { return le.Uint32(header(p, 0)[12:]) }
	for _, c := range []struct {
		what   string
		change func(*parts)
		want   string
		waves  int
	}{
		{"all agrees", func(*parts) {}, "", 4},
		{"the bytes that the first has", func(p *parts) { setSize(p, used(p)) }, "it is read as 4 save areas of 0x100000 bytes", 4},
		{"no bytes", func(p *parts) {
			setSize(p, 0)
			clear(header(p, 0)[:16])
		}, "it is read as 4 save areas of 0x100000 bytes", 3},
		{"the bytes of all", func(p *parts) { setSize(p, 4*saveSize) }, "it is read as 4 save areas of 0x100000 bytes", 4},
		{"one XCC", func(p *parts) { setCount(p, 1) }, "it is read as 4 save areas of 0x100000 bytes", 4},
		{"no XCC", func(p *parts) { setCount(p, 0) }, "it is read as 4 save areas of 0x100000 bytes", 4},
		{"an XCC too much", func(p *parts) { setCount(p, 5) }, "it is read as 4 save areas of 0x100000 bytes", 4},
		{"an area that is not there", func(p *parts) {
			setSize(p, used(p))
			delete(p.m.parts, saveAt+2*saveSize)
		}, "the save area of XCC 2 at 0x710000200000: no memory", 3},
		{"a header of something else", func(p *parts) {
			setSize(p, used(p))
			le.PutUint32(header(p, 2)[16:], 5)
		}, "where the areas of its other XCCs are is not known: the waves of XCC 0 alone are read", 1},
		{"headers that say nothing", func(p *parts) {
			setSize(p, used(p))
			for i := range 4 {
				clear(header(p, i)[16:24])
			}
		}, "the waves of XCC 0 alone are read", 1},
		{"waves behind the areas", func(p *parts) {
			setSize(p, used(p))
			le.PutUint32(header(p, 0)[16:], 0x1000)
		}, "queue 1 (COMPUTE_AQL, QID 7), the save area of XCC 0 at 0x710000000000: its waves end at offset 0xff000, which is not within its", 0},
	} {
		p := &parts{&testMemory{}, testNote(90402, 4, 1)}
		testHost(p.m, 11)
		for i := range 4 {
			b := testArea([]uint32{state, word}, testRecord(32*256, 112*4, nil, map[int]uint32{6: 1, 11: 1<<31 | 1<<6}, 0, 64))
			le.PutUint32(b[16:], uint32(4-i)*saveSize)
			le.PutUint32(b[20:], 4096)
			p.m.put(saveAt+uint64(i)*saveSize, b)
		}
		c.change(p)
		a := readCore(t, p.m, p.note)
		got := strings.Join(a.Problems, "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || len(a.Threads) != c.waves {
			t.Errorf("%s: %d waves and problems %q, expected %d and %q", c.what, len(a.Threads), got, c.waves, c.want)
		}
	}
}

// TestArchitectedScratch finds the private memory of a wave by FLAT_SCRATCH where the note
// counts the shader arrays of all XCCs, and where the runtime's structure of the queue is missing.
func TestArchitectedScratch(t *testing.T) {
	const location, slot, engine = 0x7300_0000_0000, 3, 2
	for _, c := range []struct {
		what       string
		arrays     uint32
		noQueue    bool
		flat       uint64
		want, size uint64 // from the location on
		problem    string
	}{
		{"by the note", 8, false, location + (8*engine+slot)*1024, (8*engine + slot) * 1024, 1024, ""},
		{"the arrays of both XCCs", 16, false, location + (8*engine+slot)*1024, (8*engine + slot) * 1024, 1024,
			"the private memory of 1 wave is found by FLAT_SCRATCH: the note gives each XCC 8 shader engines, but FLAT_SCRATCH of w1 is right for 4"},
		{"another place", 16, false, location + 5, 0, 0, "it should be at 0x730000002c00, but FLAT_SCRATCH of w1 is 0x730000000005"},
		{"no amd_queue_t", 8, true, location + 0x4c00, 0x4c00, 64 * 48, "the private memory of 1 wave is that at FLAT_SCRATCH, of the size in the packets"},
		{"no amd_queue_t, no FLAT_SCRATCH", 8, true, 0, 0, 0, "amd_queue_t, could not be read"},
	} {
		m := &testMemory{}
		testHost(m, 11)
		le.PutUint32(m.parts[ringAt][64+24:], 47)
		note := testNote(90402, 2, 1)
		le.PutUint32(note[56+100:], c.arrays)
		if c.noQueue {
			delete(m.parts, queueAt-72)
		}
		record := testRecord(32*256, 112*4, nil, map[int]uint32{6: 1, 11: 1<<31 | 1<<6}, 0, 64)
		le.PutUint64(record[32*256+(108-6)*4:], c.flat)
		m.put(saveAt, testArea([]uint32{1<<31 | 3 | 7<<6, 1<<17 | 1<<16 | 1<<15 | engine<<9 | slot}, record))
		m.put(saveAt+saveSize, make([]byte, saveSize))
		a := readCore(t, m, note)
		got := strings.Join(a.Problems, "\n")
		if c.problem == "" && got != "" || !strings.Contains(got, c.problem) || len(a.Threads) != 1 {
			t.Errorf("%s: %d waves, problems %q, expected %q", c.what, len(a.Threads), got, c.problem)
			continue
		}
		if list := a.Threads[0].Memory; c.size == 0 && len(list) > 0 || c.size > 0 &&
			(len(list) != 1 || list[0].Address != location+c.want || list[0].Size != (c.size+1023)/1024*1024) {
			t.Errorf("%s: memory %+v, expected %#x bytes at %#x", c.what, list, c.size, location+c.want)
		}
	}
}
