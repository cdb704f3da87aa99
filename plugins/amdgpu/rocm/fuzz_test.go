// SPDX-License-Identifier: Apache-2.0

package rocm_test

import (
	"math/rand/v2"
	"testing"

	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
)

// FuzzNote reads notes in a memory that has all that the runtime's has.
func FuzzNote(f *testing.F) {
	for version, xccs := range map[uint32]int{90010: 1, 90402: 2, 120000: 1} {
		f.Add(testNote(version, xccs, 2))
	}
	core, err := corefile.Random(rand.New(rand.NewPCG(1, 2)), corefile.Unified, 12, corefile.MachineNamed("gfx1100")).Build()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(core.Note())
	m := &testMemory{}
	testHost(m, 11)
	m.put(saveAt, testArea([]uint32{1<<31 | 3 | 7<<6, 1<<17 | 1<<16}, testRecord(16*256, 112*4, nil, nil, 0, 64)))
	f.Fuzz(func(t *testing.T, note []byte) {
		if a := readCore(t, m, note); len(a.Threads) == 0 && len(a.Problems) == 0 && len(a.Queues) > 0 && a.Kind == "" {
			t.Error("neither waves nor a reason")
		}
	})
}

// FuzzSaveArea reads a queue whose save area, ring, structure and code objects are all
// made of the same bytes, and begin at different ones.
func FuzzSaveArea(f *testing.F) {
	state, ttmps := uint32(1<<31|3|7<<6|2<<9|3<<24), map[int]uint32{6: 1<<30 | 2<<25 | 1}
	area := testArea([]uint32{state, 1<<17 | 1<<15, 1<<16 | 6},
		testRecord(32*256, 112*4, map[int]uint32{6: 1 << 8}, ttmps, 1024, 64), testRecord(32*256, 112*4, nil, nil, 0, 64))
	small := append(area[:64:64], area[saveSize-4096-2*9216:]...)
	le.PutUint32(small[8:], uint32(len(small)-4096))
	f.Add(uint32(90010), uint32(11), small)
	f.Add(uint32(90402), uint32(12), small)
	f.Add(uint32(110000), uint32(9), small)
	f.Add(uint32(120500), uint32(12), make([]byte, 4096))
	f.Fuzz(func(t *testing.T, processor, version uint32, bytes []byte) {
		if len(bytes) == 0 || len(bytes) > saveSize {
			return
		}
		m := &testMemory{}
		testHost(m, version)
		m.put(saveAt, bytes)
		m.put(saveAt+saveSize, bytes)
		for _, at := range []uint64{ringAt, kernelAt, 0x7200_0000_0000} {
			m.put(at, bytes[len(bytes)/2:])
		}
		if len(bytes)%2 == 1 {
			m.put(debugAt, append(le.AppendUint32(nil, version), bytes...))
			m.put(queueAt-72, bytes[len(bytes)/3:])
		}
		a := readCore(t, m, testNote(processor, 1, 2))
		if n := m.reads.Load(); n > 100_000 {
			t.Errorf("%d reads", n)
		}
		if len(a.Threads) > len(bytes)/1024*2 {
			t.Errorf("%d waves in %d bytes", len(a.Threads), len(bytes))
		}
	})
}
