// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
)

// progress calls Options.Progress with how many samples are done. It belongs to the one
// goroutine that adds samples to a profile, and may be nil.
type progress struct {
	tell        func(done, total uint64) // nil: no progress is reported
	done, total uint64
}

// newProgress counts the samples of a recording, which may be nil, and of files of
// accelerators, with the dispatches there.
func newProgress(tell func(done, total uint64), f *perfdata.File, gpu []gpusamples.File) *progress {
	p := &progress{tell: tell}
	if f != nil {
		p.total = f.Samples()
	}
	for _, file := range gpu {
		facts := file.Facts()
		p.total += uint64(len(facts.Dispatches))
		for i := range facts.Events {
			p.total += uint64(max(facts.Events[i].Samples, 0)) //nolint:gosec // not negative
		}
	}
	return p
}

// add adds to the number of samples that are done.
func (p *progress) add(n int) {
	if p == nil || p.tell == nil {
		return
	}
	p.done += uint64(n) //nolint:gosec // not negative
	p.tell(p.done, p.total)
}
