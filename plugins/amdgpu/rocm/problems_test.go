// SPDX-License-Identifier: Apache-2.0

package rocm_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// TestProblems says what of a core cannot be read, and reads the rest.
func TestProblems(t *testing.T) {
	const state, word = 1<<31 | 3 | 7<<6, 1<<17 | 1<<16 // 16 vector registers, 112 scalar ones; a group of one wave
	const agentAt, queueAt64 = 40 + 16, 40 + 16 + 128   // in the note
	record := func() []byte { return testRecord(16*256, 112*4, nil, map[int]uint32{6: 1}, 0, 64) }
	area := func() []byte { return testArea([]uint32{state, word}, record()) }
	type parts struct {
		m    *testMemory
		note []byte
	}
	for _, c := range []struct {
		what   string
		change func(*parts)
		want   string
		waves  int
	}{
		{"nothing", func(*parts) {}, "", 2},
		{"a note without a header", func(p *parts) { p.note = p.note[:39] }, "39 bytes, expected a header of 40", 0},
		{"another version", func(p *parts) { p.note[0] = 2 }, "its version is 2, expected 1", 0},
		{"an old driver", func(p *parts) { p.note[12] = 12 }, "version 1.12, expected 1.13", 2},
		{"small agents", func(p *parts) { p.note[28] = 112 }, "offset 0x1c: an agent has 112 bytes, expected a multiple of 8 of at least 120", 0},
		{"many agents", func(p *parts) { p.note[27] = 0xff }, "offset 0x38: 4278190081 times an agent of 128 bytes", 0},
		{"a queue too much", func(p *parts) { p.note[32] = 3 }, "3 times a queue of 64 bytes, where 128 bytes are left", 0},
		{"a queue too few", func(p *parts) { p.note[32] = 1 }, "64 bytes after the last queue, expected none", 0},
		{"a runtime that is not debugged", func(p *parts) { p.note[48] = 0 }, "the runtime's state is 0, expected 1", 2},
		{"an agent of a family that is not known", func(p *parts) { le.PutUint32(p.note[agentAt+88:], 130000) }, "agent 1 is a gfx1300 (version 130000), of which nothing is known, expected one of gfx908, ", 0},
		{"an agent that is not known", func(p *parts) { le.PutUint32(p.note[agentAt+88:], 90013) }, "agent 1 is a gfx90d (version 90013), which is not known: its waves are read as those of gfx9", 2},
		{"the queue of another agent", func(p *parts) { p.note[queueAt64+44]++ }, "queue 1 (COMPUTE_AQL, QID 7) is of the agent 0x1268, which the core does not have", 1},
		{"a queue that is not valid", func(p *parts) { p.note[queueAt64+43] |= 0x80 }, "queue 1 (COMPUTE_AQL, QID 7): the driver says that it is not valid", 1},
		{"a queue of other packets", func(p *parts) { p.note[queueAt64+52] = 0 }, "queue 1 (COMPUTE, QID 7): it is no queue of AQL packets", 1},
		{"a queue for copies", func(p *parts) { p.note[queueAt64+52] = 1 }, "", 1},
		{"XCCs without number", func(p *parts) { le.PutUint32(p.note[agentAt+108:], 1<<31) }, "its agent has 2147483648 XCCs, expected 1 to 64", 0},
		{"areas that overlap", func(p *parts) { le.PutUint64(p.note[queueAt64+64+32:], saveAt+saveSize-1) }, "overlap those of queue 1", 1},
		{"areas past the end", func(p *parts) { le.PutUint64(p.note[queueAt64+32:], 1<<64-4096) }, "pass the end of the address space", 1},
		{"an area that is not there", func(p *parts) { delete(p.m.parts, saveAt) }, "queue 1 (COMPUTE_AQL, QID 7), the save area of XCC 0 at 0x710000000000: no memory", 1},
		{"a queue that never had waves", func(p *parts) { p.m.put(saveAt, make([]byte, saveSize)) }, "", 1},
		{"a queue whose waves are over", func(p *parts) { p.m.put(saveAt, testArea(nil)) }, "", 1},
		{"waves up to the end of the area", func(p *parts) { le.PutUint32(p.note[queueAt64+56:], saveSize-4096) }, "", 2},
		{"waves past the end of the area", func(p *parts) { le.PutUint32(p.note[queueAt64+56:], saveSize-4097) }, "by the note it has a save area of 0xfefff bytes, but the header at 0x710000000000 says that its waves end at offset 0xff000: its waves are read up to there", 2},
		{"a control stack in the header", func(p *parts) {
			b := p.m.parts[saveAt]
			le.PutUint32(b[0:], 36)
			le.PutUint32(b[4:], le.Uint32(b[8:])-le.Uint32(b[12:])-36)
		}, "its control stack of", 1},
		{"a control stack that is not there", func(p *parts) { p.m.parts[saveAt] = p.m.parts[saveAt][:4096] }, "its control stack: no memory at", 1},
		{"half a word of a control stack", func(p *parts) {
			b := p.m.parts[saveAt]
			le.PutUint32(b[0:], le.Uint32(b[0:])+2)
			le.PutUint32(b[4:], le.Uint32(b[4:])-2)
		}, "expected whole words", 1},
		{"waves outside the area", func(p *parts) { le.PutUint32(p.m.parts[saveAt][8:], saveSize+4) }, "expected one to begin where the other ends", 1},
		{"areas that do not meet", func(p *parts) { p.m.parts[saveAt][12] += 4 }, "expected one to begin where the other ends", 1},
		{"a record too much", func(p *parts) { p.m.put(saveAt, testArea([]uint32{state, word, word}, record())) }, "word 4 of its control stack: a wave's record of 0x1280 bytes", 1},
		{"a record too few", func(p *parts) { p.m.put(saveAt, testArea([]uint32{state, word}, record(), record())) }, "the records of its 1 waves begin at", 1},
		{"a wave without its group", func(p *parts) { p.m.put(saveAt, testArea([]uint32{state, 1 << 16}, record())) }, "the first of the group of 1 wave is missing", 2},
		{"a packet outside the ring", func(p *parts) { le.PutUint32(p.note[queueAt64+48:], 64) }, "packet 1 of a ring of 1", 2},
		{"a packet that is over", func(p *parts) { p.m.parts[queueAt-72][72] = 67 }, "number 65, expected one from 67 up to 70", 2},
		{"a packet that is no dispatch", func(p *parts) { p.m.parts[ringAt][64] = 3 }, "packet 1 of its ring is of type 3", 2},
		{"a queue's structure that is not there", func(p *parts) { delete(p.m.parts, queueAt-72) }, "amd_queue_t, could not be read", 2},
		{"a PC that is odd", func(p *parts) {
			p.m.put(saveAt, testArea([]uint32{state, word}, testRecord(16*256, 112*4, map[int]uint32{1: 0x1001}, map[int]uint32{6: 1}, 0, 64)))
		}, "", 2},
		{"a core without the process", func(p *parts) { delete(p.m.parts, debugAt) }, "its version is taken for 12", 2},
		{"an old runtime", func(p *parts) { p.m.parts[debugAt][0] = 5 }, "has version 5, expected 8 to 12: it is read like 8", 2},
		{"a list under change", func(p *parts) { p.m.parts[debugAt][24] = 1 }, "about to change its list of code objects", 2},
		{"a list without end", func(p *parts) { le.PutUint64(p.m.parts[debugAt][0x118:], debugAt+0x100) }, "the entry at 0x700000000100 follows itself", 2},
		{"a code object of another kind", func(p *parts) { copy(p.m.parts[debugAt][0x200:], "http") }, "expected file:// or memory://", 2},
		{"a code object whose place is no number", func(p *parts) { copy(p.m.parts[debugAt][0x215:], "et=x") }, "expected a number", 2},
	} {
		p := &parts{&testMemory{}, testNote(90000, 1, 2)}
		testHost(p.m, 11)
		p.m.put(saveAt, area())
		p.m.put(saveAt+saveSize, area())
		c.change(p)
		a := readCore(t, p.m, p.note)
		got := strings.Join(a.Problems, "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || len(a.Threads) != c.waves {
			t.Errorf("%s: %d waves and problems %q, expected %d and %q", c.what, len(a.Threads), got, c.waves, c.want)
		}
		if c.what == "a PC that is odd" && !strings.Contains(a.Threads[0].Problem, "0x1001, expected a multiple of 4") {
			t.Errorf("%s: %q", c.what, a.Threads[0].Problem)
		}
	}
}

// TestRecordsThatAreMissing says of each wave whose state is not in the core why it
// cannot be walked.
func TestRecordsThatAreMissing(t *testing.T) {
	m := &testMemory{}
	testHost(m, 11)
	var words []uint32
	var records [][]byte
	for range 40 {
		words = append(words, 1<<31|3|7<<6, 1<<17|1<<16)
		records = append(records, testRecord(16*256, 112*4, nil, map[int]uint32{6: 1}, 0, 64))
	}
	b := testArea(words, records...)
	m.put(saveAt, b[:saveSize-4096-20*len(records[0])])
	a := readCore(t, m, testNote(90000, 1, 1))
	missing := 0
	for i := range a.Threads {
		if p := a.Threads[i].Problem; strings.Contains(p, "could not be read") {
			missing++
		}
	}
	if len(a.Threads) != 40 || missing != 20 || !strings.Contains(strings.Join(a.Problems, "\n"), "the state of 20 waves could not be read") {
		t.Errorf("%d waves, %d without state, problems %q", len(a.Threads), missing, a.Problems)
	}
}

// TestManyWaves reads as many waves as there may be, and says that there are more.
func TestManyWaves(t *testing.T) {
	const waves, size = 1<<18 + 10, 64 + 128 + 4*256 // of 4 vector registers and no scalar ones
	m := &zeros{}
	testHost(&m.testMemory, 11)
	header := make([]byte, 40)
	le.PutUint32(header, 4096)
	le.PutUint32(header[4:], 8+4*waves)
	le.PutUint32(header[8:], 4096+8+4*waves+waves*size)
	le.PutUint32(header[12:], waves*size)
	m.put(saveAt, header)
	note := testNote(90000, 1, 1)
	le.PutUint32(note[len(note)-8:], 1<<31)
	req := &sdk.OpenTargetRequest{Notes: []sdk.Note{{Owner: "AMDGPU", Type: 33, Data: note}}}
	a, err := open(t, m, req)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Threads) != 1<<18 || !strings.Contains(strings.Join(a.Problems, "\n"), "more than 262144 waves") {
		t.Errorf("%d waves, problems %q", len(a.Threads), a.Problems)
	}
}

// TestNotes ignores notes that are not known, and a second one.
func TestNotes(t *testing.T) {
	m := &testMemory{}
	testHost(m, 11)
	m.put(saveAt, testArea([]uint32{1<<31 | 3 | 7<<6, 1<<17 | 1<<16}, testRecord(16*256, 112*4, nil, nil, 0, 64)))
	note := testNote(90000, 1, 1)
	other := bytes.Clone(note)
	other[56+88]++
	a, err := open(t, m, &sdk.OpenTargetRequest{Notes: []sdk.Note{
		{Owner: "AMDGPU", Type: 32, Data: other}, {Owner: "AMDGPU", Type: 33, Data: note},
		{Owner: "AMDGPU", Type: 33, Data: bytes.Clone(note)}, {Owner: "AMDGPU", Type: 33, Data: other},
	}})
	if err != nil || len(a.Threads) != 1 || len(a.Problems) != 3 {
		t.Errorf("%d waves, problems %q, %v", len(a.Threads), a.Problems, err)
	}
}

// TestManyAreas gives up on areas that are not there before they take long.
func TestManyAreas(t *testing.T) {
	m := &testMemory{}
	testHost(m, 11)
	a := readCore(t, m, testNote(90402, 64, 1<<12+1))
	last := a.Problems[len(a.Problems)-1]
	if n := m.reads.Load(); n > 1<<16+100 || len(a.Problems) > 70 || !strings.Contains(last, " more problems") {
		t.Errorf("%d reads, %d problems, the last %q", n, len(a.Problems), last)
	}
	if !strings.Contains(strings.Join(a.Problems, "\n"), "1 queues after the first 4096 are left out") {
		t.Errorf("problems %q", a.Problems)
	}
}

// TestQueueKinds says what a queue is and what happened to it, in the driver's words.
func TestQueueKinds(t *testing.T) {
	for _, c := range []struct {
		kind       uint32
		exceptions uint64
		want       string
	}{
		{0, 0, "COMPUTE, QID 7"}, {4, 0, "SDMA_BY_ENG_ID, QID 7"}, {5, 0, "kind 5, QID 7"},
		{2, 1<<4 | 1<<30, "COMPUTE_AQL, QID 7, WAVE_MEMORY_VIOLATION"},
		{2, 1 | 1<<29, "COMPUTE_AQL, QID 7, WAVE_ABORT, PREEMPTION_ERROR"},
		{2, 1<<64 - 1, "COMPUTE_AQL, QID 7, WAVE_ABORT, WAVE_TRAP, WAVE_MATH_ERROR, WAVE_ILLEGAL_INSTRUCTION, " +
			"WAVE_MEMORY_VIOLATION, WAVE_APERTURE_VIOLATION, PACKET_DISPATCH_DIM_INVALID, " +
			"PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID, PACKET_DISPATCH_CODE_INVALID, PACKET_RESERVED"},
	} {
		note := testNote(90000, 1, 1)
		q := note[len(note)-64:]
		le.PutUint32(q[52:], c.kind)
		le.PutUint64(q, c.exceptions)
		if a := readCore(t, &testMemory{}, note); a.Queues[0].Kind != c.want {
			t.Errorf("kind %d, exceptions %#x: %q, expected %q", c.kind, c.exceptions, a.Queues[0].Kind, c.want)
		}
	}
}
