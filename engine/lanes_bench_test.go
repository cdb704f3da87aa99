// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"os"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// BenchmarkVariablesOfWaves walks the waves of examples/mixed.
func BenchmarkVariablesOfWaves(b *testing.B) {
	for name, limits := range map[string]*trace.ValueLimits{"without": nil, "with": {}} {
		b.Run(name, func(b *testing.B) {
			e, err := engine.New(engine.Options{
				Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}, Lanes: true, Locals: limits,
			})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			file := os.Getenv("WAVES")
			if file == "" {
				file = "../examples/mixed/mixed.snapshot"
			}
			t, err := e.Open(file)
			if err != nil {
				b.Fatal(err)
			}
			defer t.Close()
			b.ReportAllocs()
			for b.Loop() {
				for _, th := range t.Threads()[1:] {
					t.Walk(context.Background(), th)
				}
			}
		})
	}
}
