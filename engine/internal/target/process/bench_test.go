// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"
)

// BenchmarkStop tells how long the threads of a process are stopped: all of them, from the
// first one's stop to the last one's release, and the one that was stopped longest.
func BenchmarkStop(b *testing.B) {
	program, _ := victim(b)
	for _, threads := range []int{1, 100, 1000} {
		b.Run(strconv.Itoa(threads), func(b *testing.B) {
			cmd := start(b, exec.Command(program, "threads", strconv.Itoa(threads)), true)
			var all, longest []time.Duration
			for b.Loop() {
				p, err := Open(cmd.Process.Pid, options())
				if err != nil {
					b.Fatal(err)
				}
				whole, one := p.Stopped()
				all, longest = append(all, whole), append(longest, one)
				_ = p.Close()
			}
			for name, list := range map[string][]time.Duration{"all": all, "longest": longest} {
				slices.Sort(list)
				b.ReportMetric(float64(list[len(list)/2].Microseconds()), "µs-"+name+"-median")
				b.ReportMetric(float64(list[len(list)-1].Microseconds()), "µs-"+name+"-max")
			}
		})
	}
}
