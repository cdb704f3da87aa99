// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"os"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/sdk"
)

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkThreads makes threads of 100,000 tasks, which go on at one place.
func BenchmarkThreads(b *testing.B) {
	f := newFake()
	f.answer = sdk.OpenRuntimeAnswer{HasThreads: true}
	target := open(b, serverCore, engine.Options{}, f)
	parked := target.Threads()[0].Registers
	answer := &sdk.ManagedThreadsAnswer{Threads: make([]sdk.ManagedThread, 100_000)}
	for i := range answer.Threads {
		answer.Threads[i] = sdk.ManagedThread{Number: uint64(i) + 1, State: "waiting", Registers: parked}
	}
	f.threads = func(sdk.RuntimeEngine, *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
		return answer, nil
	}
	b.ReportAllocs()
	for b.Loop() {
		if n := len(target.WithGoroutines(b.Context()).Threads()); n < len(answer.Threads) {
			b.Fatalf("%d threads", n)
		}
	}
}

// BenchmarkStacks walks the stacks of a target without a runtime, without and with a plugin for
// one that no module has.
func BenchmarkStacks(b *testing.B) {
	run := func(target *engine.Target) func(b *testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				for s := range target.Stacks(b.Context()) {
					_ = s
				}
			}
		}
	}
	absent := newFake()
	absent.about.Recognises[0].Symbol = "no such symbol"
	b.Run("none", run(open(b, serverCore, engine.Options{})))
	b.Run("absent", run(open(b, serverCore, engine.Options{}, absent)))
}
