// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"fmt"
	"testing"

	"github.com/unwindd/unwindd/examples/cuda-core/corefile"
)

// manyWarps is a core of warps of 32 lanes, each with registers, local memory and two callers,
// on 132 SMs.
func manyWarps(warps int) *corefile.Core {
	const sms, perBlock = 132, 8
	d := corefile.Device{Name: "a GPU", SM: "sm_90", Lanes: 32, Registers: 255, Predicates: 7, Major: 9, UniformRegisters: 63}
	d.Contexts = []corefile.Context{{ID: 1, HostThread: 7}}
	d.Grids = []corefile.Grid{{ID: 1, Context: 1, Entry: 0x7d00_0000_0000, Block: [3]uint32{256, 1, 1}, Blocks: [3]uint32{uint32(warps / perBlock), 1, 1}}} //nolint:gosec // small
	d.SMs = make([]corefile.SM, sms)
	for i := range sms {
		d.SMs[i].ID = uint32(i)
	}
	registers, predicates, local := make([]uint32, 40), make([]uint32, 7), make([]byte, 64)
	for i := range warps / perBlock {
		m := &d.SMs[i%sms]
		b := corefile.Block{Grid: 1, Index: [3]uint32{uint32(i)}} //nolint:gosec // small
		for j := range uint32(perBlock) {
			w := corefile.Warp{ID: uint32(len(m.Blocks))*perBlock + j, Valid: ^uint32(0), Active: ^uint32(0), Registers: 40, Uniform: make([]uint32, 63)} //nolint:gosec // small
			for k := range uint32(32) {
				w.Lanes = append(w.Lanes, corefile.Lane{
					PC: 0x7d00_0000_0100, Number: k, Thread: [3]uint32{j*32 + k}, Registers: registers, Predicates: predicates, Local: local, LocalStart: 0xffffc0,
					Depth: 2, Frames: []corefile.Frame{{Address: 0x7d00_0000_0200}, {Address: 0x7d00_0000_0300, Level: 1}}, State: 1,
				})
			}
			b.Warps = append(b.Warps, w)
		}
		m.Blocks = append(m.Blocks, b)
	}
	return &corefile.Core{Driver: 615, Devices: []corefile.Device{d}}
}

func BenchmarkRead(b *testing.B) {
	for _, warps := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(warps), func(b *testing.B) {
			data := manyWarps(warps).Build().Bytes()
			e := &fileEngine{data: data}
			h := headerOf(data)
			b.ReportAllocs()
			for b.Loop() {
				a, err := Read(b.Context(), e, h, &testMachine)
				if err != nil || len(a.Threads) != warps/8*8 || len(a.Problems) > 0 {
					b.Fatal(len(a.Threads), err, a.Problems)
				}
			}
			b.ReportMetric(float64(e.reads)/float64(b.N), "reads/op")
			b.ReportMetric(float64(len(data))/1e6, "MB-of-file")
		})
	}
}
