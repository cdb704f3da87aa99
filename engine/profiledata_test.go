// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
)

// What perf mem records is counted by its kind, whoever walks the stacks, and branches that a
// processor took are no frames.
func TestProfileOfDataAndBranches(t *testing.T) {
	const address, branches, weight, source = 1 << 3, 1 << 11, 1 << 14, 1 << 15
	b := newShape("x86_64", sampleBasics|address|branches|weight|source, 1|1<<3, 0)
	b.comm(7, 100, 0, "program")
	b.mmap(7, 100, 0x401000, 0x1000, 0x1000, "/x/program")
	const l1, ram = 0x68100142, 2 | 2<<5 | 0x80<<5 | 0x10<<19
	for i, s := range [][2]uint64{{l1, 5}, {ram, 300}, {l1, 7}, {0, 0}} {
		b.record(9, inUser, uint64(0x401010), uint32(7), uint32(7), uint64(1000+i), uint64(0x7fff0000), uint64(1), uint64(0x401200), uint64(0x401000), uint64(0), s[1], s[0])
	}
	p := mustProfile(t, b, "", trace.ProfileOptions{})
	if d := cmp.Diff([]trace.DataAccess{
		{Operation: "load", Level: "L1 hit", Snoop: "none", TLB: "L1 or L2 hit", Samples: 2, Latency: 12},
		{Operation: "load", Level: "local RAM hit", Snoop: "HitM", Samples: 1, Latency: 300},
	}, p.Memory); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"0x401010 /x/program: end-of-stack", "0x401010 /x/program: end-of-stack", "0x401010 /x/program: end-of-stack", "0x401010 /x/program: end-of-stack"}, shapeStacks(p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if all := strings.Join(p.Problems, "\n"); strings.Count(all, "these are no frames") != 1 {
		t.Errorf("problems %q", all)
	}
}

// A recording of a machine without an architecture here has its call chains, and says that stacks
// are not walked.
func TestProfileOfMachinesWithoutAnArchitecture(t *testing.T) {
	for _, machine := range []string{"riscv64", "s390x", "ppc64", "loongarch64", "sparc64"} {
		b := newShape(machine, sampleBasics|sampleChain|sampleRegs, 0, 1)
		b.comm(7, 100, 0, "program")
		b.mmap(7, 100, 0x401000, 0x1000, 0x1000, "/x/program")
		b.sample(inUser, 7, 1000, 0x401010, counted(chainUser, 0x401010, 0x401100), []uint64{2, 0x401010})
		p := mustProfile(t, b, "", trace.ProfileOptions{})
		if d := cmp.Diff([]string{"0x401010 /x/program; 0x401100 /x/program: end-of-stack"}, shapeStacks(p)); d != "" {
			t.Errorf("%s: (-want +got):\n%s", machine, d)
		}
		if all := strings.Join(p.Problems, "\n"); !strings.Contains(all, "stacks are not walked") {
			t.Errorf("%s: problems %q", machine, all)
		}
	}
}
