// SPDX-License-Identifier: Apache-2.0

package minidumps

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// lldbPrints is a command of LLDB's that prints a line for each thread: PCS, its ID and
// the PCs of its frames.
const lldbPrints = `script [print('PCS', t.GetThreadID(), *[f.FindRegister('rip').GetValueAsUnsigned() for f in t ` +
	`if not f.IsInlined() and not f.IsArtificial()]) for t in lldb.process]`

// compareWithLLDB has LLDB read a minidump: all of its frames are to be ours, in that
// order. It may have fewer: a return address that is no code is none, and functions whose
// last instruction is a call are looked for behind it.
func (c *tally) compareWithLLDB(t testing.TB, program, path string, ours *document) {
	t.Helper()
	said := oracle.Run(t, "lldb-22", "-x", "-b", "-o", "target create "+program+" --core "+path, "-o", lldbPrints)
	threads := 0
	for line := range strings.Lines(said) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "PCS" {
			continue
		}
		threads++
		th := ours.thread(words[1])
		if th == nil {
			t.Errorf("%s: thread %s is missing", filepath.Base(path), words[1])
			continue
		}
		own := th.physical()
		i, equal := 0, 0
		for k, word := range words[2:] {
			pc, err := strconv.ParseUint(word, 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			n := slices.Index(own[i:], pc)
			if n < 0 {
				t.Errorf("%s: thread %s: frame %d of LLDB's at %#x is not in %#x", filepath.Base(path), th.ID, k, pc, own)
				break
			}
			i += n + 1
			equal++
		}
		c.count(equal, lldbLeavesOut, len(own)-equal)
	}
	if threads != len(ours.Threads) {
		t.Errorf("%s: LLDB has %d threads, ours are %d", filepath.Base(path), threads, len(ours.Threads))
	}
}

// lldbLeavesOut is the class of what LLDB does not have.
const lldbLeavesOut = "LLDB leaves out"

// physical are the PCs of frames that are on the stack.
func (ours *thread) physical() (pcs []uint64) {
	for i := range ours.Frames {
		if f := &ours.Frames[i]; !f.Inlined && f.FoundBy != "call-site" {
			pcs = append(pcs, f.peerForm().pc)
		}
	}
	return pcs
}
