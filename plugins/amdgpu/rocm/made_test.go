// SPDX-License-Identifier: Apache-2.0

package rocm_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

var le = binary.LittleEndian

// A testMemory is a core's memory: parts that do not overlap.
type testMemory struct {
	sdk.Engine
	parts map[uint64][]byte
	reads atomic.Int64
}

func (m *testMemory) ReadMemory(_ context.Context, r sdk.MemoryRange, buf []byte) (int, error) {
	m.reads.Add(1)
	if r.Space != locexpr.AddressSpace(0) {
		return 0, errors.New("another address space")
	}
	for start, part := range m.parts {
		if r.Address-start < uint64(len(part)) {
			n := copy(buf, part[r.Address-start:])
			if n < len(buf) {
				return n, fmt.Errorf("no memory at %#x", r.Address+uint64(n))
			}
			return n, nil
		}
	}
	return 0, fmt.Errorf("no memory at %#x", r.Address)
}

func (m *testMemory) put(address uint64, part []byte) {
	if m.parts == nil {
		m.parts = map[uint64][]byte{}
	}
	m.parts[address] = part
}

// Where things are in the cores that the tests make.
const (
	debugAt  = 0x7000_0000_0000
	queueAt  = 0x7000_0001_0000 // read_dispatch_id
	ringAt   = 0x7000_0002_0000
	kernelAt = 0x7000_0003_0000
	saveAt   = 0x7100_0000_0000
	saveSize = 1 << 20
	localAt  = 1 << 48
	privAt   = 2 << 48
)

// testNote is a note of one agent and queues of it, whose save areas follow each other.
func testNote(version uint32, xccs, queues int) []byte {
	b := le.AppendUint64(nil, 1)
	for _, v := range []uint32{1, 18, 16, 0, 1, 128, uint32(queues), 64} {
		b = le.AppendUint32(b, v)
	}
	b = le.AppendUint64(b, debugAt)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint32(b, 1)
	a := make([]byte, 128)
	le.PutUint64(a[8:], localAt)
	le.PutUint64(a[16:], localAt+1<<32-1)
	le.PutUint64(a[24:], privAt)
	le.PutUint64(a[32:], privAt+1<<32-1)
	le.PutUint32(a[56:], 4711)
	le.PutUint32(a[88:], version)
	le.PutUint32(a[100:], 8)
	le.PutUint32(a[104:], 2)
	le.PutUint32(a[108:], uint32(xccs))
	b = append(b, a...)
	for i := range queues {
		q := make([]byte, 64)
		le.PutUint64(q[8:], ringAt)
		le.PutUint64(q[16:], queueAt-72)
		le.PutUint64(q[24:], queueAt)
		le.PutUint64(q[32:], saveAt+uint64(i*xccs)*saveSize)
		le.PutUint32(q[40:], uint32(i+7)|1<<30)
		le.PutUint32(q[44:], 4711)
		le.PutUint32(q[48:], 64*64)
		le.PutUint32(q[52:], 2)
		le.PutUint32(q[56:], saveSize)
		b = append(b, q...)
	}
	return b
}

// testHost is what the runtime has in the memory of the process.
func testHost(m *testMemory, version uint32) {
	d := make([]byte, 4096)
	le.PutUint32(d, version)
	le.PutUint64(d[8:], debugAt+0x100)
	le.PutUint64(d[0x100:], 0x7200_0000_0000)
	le.PutUint64(d[0x108:], debugAt+0x200)
	copy(d[0x200:], "file:///opt/a%20b#offset=4096&size=0x2000\x00")
	m.put(debugAt, d)
	q := make([]byte, 256)
	le.PutUint64(q[72:], 65)                  // read_dispatch_id
	le.PutUint64(q[0:], 70)                   // write_dispatch_id
	le.PutUint32(q[72+12:], 32|1<<12)         // compute_tmpring_size: 32 waves
	le.PutUint64(q[72+32:], 0x7300_0000_0000) // scratch_backing_memory_location
	le.PutUint64(q[72+40:], 0x0000_0100_0000) // scratch_backing_memory_byte_size
	m.put(queueAt-72, q)
	r := make([]byte, 64*64)
	p := r[64:]
	le.PutUint16(p, 1)
	le.PutUint16(p[4:], 64)
	le.PutUint16(p[6:], 1)
	le.PutUint16(p[8:], 1)
	le.PutUint32(p[12:], 640)
	le.PutUint32(p[16:], 1)
	le.PutUint32(p[20:], 1)
	le.PutUint64(p[32:], kernelAt)
	le.PutUint64(p[56:], 0x5151)
	m.put(ringAt, r)
	k := make([]byte, 64)
	le.PutUint64(k[16:], 0x1000)
	m.put(kernelAt, k)
}

// testArea is a save area: the control stack's words after the packets, and the
// records, the first one highest.
func testArea(words []uint32, records ...[]byte) []byte {
	b := make([]byte, saveSize)
	at := saveSize - 4096
	le.PutUint32(b[8:], uint32(at))
	for _, r := range records {
		at -= len(r)
		copy(b[at:], r)
	}
	le.PutUint32(b[12:], uint32(saveSize-4096-at))
	size := (len(words) + 2) * 4
	le.PutUint32(b[0:], uint32(at-size))
	le.PutUint32(b[4:], uint32(size))
	for i, w := range words {
		le.PutUint32(b[at-size+8+i*4:], w)
	}
	return b
}

// testRecord is a record from its parts, the lowest first; hardware registers and
// trap temporaries are by index.
func testRecord(vectors, scalars int, hardware, ttmps map[int]uint32, lds, gap int) []byte {
	b := make([]byte, vectors+scalars+128+lds+gap)
	for i := range vectors + scalars {
		b[i] = byte(i >> 2)
	}
	for i, v := range hardware {
		le.PutUint32(b[vectors+scalars+i*4:], v)
	}
	for i, v := range ttmps {
		le.PutUint32(b[vectors+scalars+64+i*4:], v)
	}
	return b
}

// readCore opens a core and validates the answer.
func readCore(t testing.TB, m sdk.Engine, note []byte) *sdk.OpenTargetAnswer {
	t.Helper()
	a, err := open(t, m, &sdk.OpenTargetRequest{Notes: []sdk.Note{{Owner: "AMDGPU", Type: 33, Data: note}}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func open(t testing.TB, m sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	t.Helper()
	a, err := amdgpu.New().OpenTarget(t.Context(), m, req)
	if err == nil {
		err = a.Validate(description, req)
	}
	return a, err
}

// zeros is a memory in which all is zero that was not put there.
type zeros struct{ testMemory }

func (m *zeros) ReadMemory(ctx context.Context, r sdk.MemoryRange, buf []byte) (int, error) {
	n, err := m.testMemory.ReadMemory(ctx, r, buf)
	if err != nil {
		clear(buf[n:])
	}
	return len(buf), nil
}

// TestReadByHand reads a core of two waves of gfx90a whose every number is
// worked out by hand.
func TestReadByHand(t *testing.T) {
	m := &testMemory{}
	testHost(m, 11)
	const sgprs = 7 // blocks of 16 after the first
	hardware := map[int]uint32{1: 0x1234, 2: 0x72, 3: 0xffff, 4: 0xf0, 5: 1<<13 | 1<<18 | 1<<5 | 1, 6: 1<<8 | 1<<5}
	ttmps := map[int]uint32{6: 1<<30 | 1<<29 | 1, 7: 0x5678, 8: 3, 9: 4, 10: 5, 11: 0x73<<7 | 2}
	state := uint32(1<<31 | 3 | sgprs<<6 | 2<<9 | 3<<24) // 16 vector registers, 16 accumulation registers, 1 KiB of local memory
	first := testRecord(32*256, 112*4, hardware, ttmps, 1024, 64)
	second := testRecord(32*256, 112*4, map[int]uint32{1: 0x2000, 2: 0x72}, map[int]uint32{6: 1, 8: 3, 9: 4, 10: 5, 11: 3}, 0, 64)
	m.put(saveAt, testArea([]uint32{state, 1<<17 | 1<<15 | 3<<9 | 5, 1 << 30, 1<<16 | 6}, first, second))
	a := readCore(t, m, testNote(90010, 1, 1))
	if len(a.Problems) != 0 || len(a.Threads) != 2 {
		t.Fatalf("%d waves, problems %q", len(a.Threads), a.Problems)
	}
	w := &a.Threads[0]
	if w.ID != "w1" || w.Name != "AMDGPU Wave 1:1:1:1 (3,4,5)/2" || w.Processor != "gfx90a" || w.Lanes != 64 || w.IsRunning || !w.HasCrashed {
		t.Errorf("wave: %+v", w)
	}
	if pc, _ := w.Registers.Uint64(16, sdk.LittleEndian); pc != 0x73_0000_5678 {
		t.Errorf("PC %#x", pc)
	}
	if v, _ := w.Registers.Uint64(17, sdk.LittleEndian); v != 0xf0_0000_ffff {
		t.Errorf("EXEC %#x", v)
	}
	if v, _ := w.Registers.Uint64(128, sdk.LittleEndian); v != 1<<13|1 {
		t.Errorf("STATUS %#x", v)
	}
	if s := w.Stop; s.Reason != "address-error" || strings.Join(s.Details, " ") != "EXCP.MEM_VIOL HALT" || s.IsPCExact || !s.HasPCExact {
		t.Errorf("stop: %+v", s)
	}
	const end = saveAt + saveSize - 4096
	const scalars = end - 64 - 1024 - 128 - 448
	want := fmt.Sprint([]sdk.SavedRegisters{
		{First: 32, Count: 64, Address: scalars}, {First: 1088, Count: 38, Address: scalars + 256},
		{First: 2560, Count: 16, Address: scalars - 32*256}, {First: 3072, Count: 16, Address: scalars - 16*256},
	})
	if got := fmt.Sprint(w.Saved); got != want {
		t.Errorf("saved %s, expected %s", got, want)
	}
	want = fmt.Sprint([]sdk.SpaceMemory{
		{Space: 3, Size: 1024, Address: end - 64 - 1024},
		{Space: 6, Size: 1024, Address: 0x7300_0000_0000 + (8*3+5)*1024},
	})
	if got := fmt.Sprint(w.Memory); got != want {
		t.Errorf("memory %s, expected %s", got, want)
	}
	if got, want := fmt.Sprint(w.Spaces), fmt.Sprint([]sdk.SpaceBase{{Space: 3, Base: localAt}, {Space: 5, Base: privAt}}); got != want {
		t.Errorf("spaces %s, expected %s", got, want)
	}
	if r := &a.Threads[1]; !r.IsRunning || r.HasCrashed || r.Stop.Reason != "" || len(r.Memory) != 1 || r.Wave.InGroup != 3 {
		t.Errorf("the second wave: %+v", r)
	}
	if got, want := fmt.Sprintf("%+v", a.Dispatches), "[{ID:1 Queue:1 Kernel: Entry:123145302511616 Grid:[640 1 1] Group:[64 1 1] Signal:20817}]"; got != want {
		t.Errorf("dispatches %s, expected %s", got, want)
	}
	if got, want := fmt.Sprintf("%+v", a.Objects), "[{URI:file:///opt/a%20b#offset=4096&size=0x2000 Path:/opt/a b Offset:4096 Size:8192 MemoryAddress:0 Into:0 Bias:125344325566464}]"; got != want {
		t.Errorf("objects %s, expected %s", got, want)
	}
	if got, want := fmt.Sprint(a.Queues), "[{1 1 COMPUTE_AQL, QID 7}]"; got != want {
		t.Errorf("queues %s, expected %s", got, want)
	}
}

// TestTTMPs tells waves whose trap temporaries say something from those of which
// nothing is known, and those that stopped from those that were interrupted.
func TestTTMPs(t *testing.T) {
	const stopped, unset, mark, skipExport = 1 << 30, 1 << 31, 1 << 31, 1 << 18
	for _, c := range []struct {
		processor, version         uint32
		isSet                      bool
		ttmp6, ttmp8, ttmp11, stat uint32
		isRunning, hasGroup        bool
	}{
		{90010, 11, true, stopped | 1, 0, 0, 0, false, true},
		{90010, 11, true, 1, 0, 0, skipExport, true, true},
		{90010, 10, true, stopped | unset | 1, 0, 0, 0, false, false},
		{90010, 9, true, stopped | unset | 1, 0, 0, 0, false, true},
		{90010, 10, false, stopped | 1, 0, 0, 0, true, false},
		{90010, 10, false, stopped | 1, 0, 0, skipExport, false, false},
		{90010, 9, false, stopped | 1, 0, 0, skipExport, true, false},
		{90402, 11, true, stopped, 0, mark | 1<<6, 0, false, true},
		{90402, 11, true, stopped, 0, 1 << 6, 0, true, true},
		{90402, 10, true, stopped, 0, 1 << 6, skipExport, false, true},
		{90402, 9, true, stopped, 0, 1 << 6, skipExport, true, true},
		{90402, 10, true, stopped | unset, 0, mark | 1<<6, 0, false, false},
		{90402, 10, true, stopped | unset, 0, 1 << 6, 0, true, true},
		{120000, 12, true, stopped, mark | 1, 0, 0, false, true},
		{120000, 12, true, stopped, 1, 0, skipExport, true, true},
		{120000, 12, true, stopped | unset, mark | 1, 0, 0, false, true},
		{120000, 12, false, stopped, mark | 1, 0, 0, false, false},
	} {
		m := &testMemory{}
		testHost(m, c.version)
		state, word, gap, scalars, statusAt := uint32(1<<31|3|7<<6), uint32(1<<17|1<<16), 64, 112*4, 5
		words := []uint32{state, word}
		if c.processor == 120000 {
			words, gap, scalars, statusAt = []uint32{1<<31 | 3, 0, 1<<12 | 1<<29}, 0, 512, 13
		}
		registers := 32 * 256 // of gfx90a: 16 vector registers, and as many as are left of 32
		if c.processor == 120000 {
			registers = 16 * 256
		}
		m.put(saveAt, testArea(words, testRecord(registers, scalars, map[int]uint32{statusAt: c.stat},
			map[int]uint32{6: c.ttmp6, 8: c.ttmp8, 11: c.ttmp11}, 0, gap)))
		note := testNote(c.processor, 1, 1)
		if !c.isSet {
			note[40+12] = 0
		}
		a := readCore(t, m, note)
		if len(a.Threads) != 1 {
			t.Errorf("%+v: %d waves, problems %q", c, len(a.Threads), a.Problems)
			continue
		}
		w := &a.Threads[0]
		if w.IsRunning != c.isRunning || w.Wave.HasGroup != c.hasGroup || w.Wave.HasInGroup != c.hasGroup || (w.Wave.Dispatch != "") != c.hasGroup {
			t.Errorf("%+v: %+v, problems %q", c, w, a.Problems)
		}
		if name := w.Name; strings.HasSuffix(name, "(?,?,?)/?") == c.hasGroup || strings.Contains(name, ":?:") == c.hasGroup {
			t.Errorf("%+v: %s", c, name)
		}
	}
}
