// SPDX-License-Identifier: Apache-2.0

package rocm_test

import (
	"fmt"
	"testing"

	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// manyWaves is a core of waves of 24 vector registers on four queues.
func manyWaves(waves int) *corefile.Core {
	agent := corefile.Agent{Machine: corefile.MachineNamed("gfx90a"), GPUID: 1, XCCs: 1, ShaderEngines: 4}
	for i := range uint32(4) {
		q := corefile.Queue{ID: i, Packets: 64, ReadID: 5, WriteID: 9, Dispatches: []corefile.Dispatch{{ID: 5, Header: 1}}}
		for j := range uint32(waves / 16) {
			g := corefile.Group{ID: [3]uint32{j}, LDS: make([]byte, 256), Lanes: 64}
			for range 4 {
				g.Waves = append(g.Waves, corefile.Wave{PC: uint64(j) * 4, VGPRs: make([]uint32, 24*64)})
			}
			q.Groups = append(q.Groups, g)
		}
		agent.Queues = append(agent.Queues, q)
	}
	return &corefile.Core{PID: 1, RuntimeVersion: 12, Agents: []corefile.Agent{agent}}
}

func BenchmarkOpenTarget(b *testing.B) {
	for _, waves := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(waves), func(b *testing.B) {
			im, err := manyWaves(waves).Build()
			if err != nil {
				b.Fatal(err)
			}
			m := madeCore(b, im)
			notes := []sdk.Note{{Owner: "AMDGPU", Type: 33, Data: im.Note()}}
			b.ReportAllocs()
			for b.Loop() {
				a, err := amdgpu.New().OpenTarget(b.Context(), m, &sdk.OpenTargetRequest{Notes: notes})
				if err != nil || len(a.Threads) != waves/16*16 {
					b.Fatal(len(a.Threads), err)
				}
			}
		})
	}
}
