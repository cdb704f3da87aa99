// SPDX-License-Identifier: Apache-2.0

package inteltest

// Large returns a run with so many stalls: a thousand of 50 kernels in each interval,
// with counts for three states.
func Large(stalls int) *Run {
	names := []string{"send", "mad", "add", "sync.nop", "dpas", "mov"}
	r := &Run{}
	for i := range 50 {
		r.Kernels = append(r.Kernels, Kernel{
			Name: "gemm_" + string(rune('A'+i)), File: "/src/gemm.cpp", GPU: 0xffff800000000000 + uint64(i)<<16, //nolint:gosec // test
			Launch: &Launch{PID: 4242, TID: 4243, Comm: "python3", Names: []string{"zeCommandListAppendLaunchKernel", "submit", "main", "_start"}},
		})
	}
	for n := 0; n < stalls; n++ {
		if n%1000 == 0 {
			r.Intervals = append(r.Intervals, Interval{End: 1_000_000_000 + uint64(n)*10_000, MHz: 2000, Busy: 97}) //nolint:gosec // test
		}
		interval := &r.Intervals[len(r.Intervals)-1]
		interval.Stalls = append(interval.Stalls, Stall{
			Kernel: n % 1000 / 20, Offset: uint64(n%20)*16 + uint64(n/1000%64)*320, Instruction: names[n%len(names)], //nolint:gosec // test
			Counts: [10]uint64{uint64(n%7 + 1), 0, 0, uint64(n%5 + 1), 0, uint64(n%300 + 1)}, //nolint:gosec // test
		})
	}
	return r
}
