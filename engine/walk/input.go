// SPDX-License-Identifier: Apache-2.0

package walk

// input is the registers and the memory that a walk reads, of a thread of a
// target or of a sample.
type input struct {
	memory  Memory       // of target or of samples
	target  targetMemory // of a thread of a target
	samples sampleMemory // of a sample
	sample  *Sample      // nil: a target is walked
	// saved has the registers in memory that were asked for; nil: one that is not there.
	saved    map[uint32][]byte
	isMapped bool // the thread's binding maps the default space
	laneUsed bool // evaluated or read state depends on the current lane
	scratch  [8]byte
}

// setTarget makes the input that of a process of a target.
func (i *input) setTarget(p *Process) {
	i.target = targetMemory{p.state, *p.code.Load()}
	i.memory, i.sample = &i.target, nil
}

// setSample makes the input that of a sample of a process.
func (i *input) setSample(s *Sample, p *Process) {
	i.samples = sampleMemory{s, s.Code}
	if s.Code == nil {
		i.samples.code = p
	}
	i.memory, i.sample = &i.samples, s
}

// release lets go of what was read.
func (i *input) release() {
	i.sample, i.saved = nil, nil
	i.target, i.samples = targetMemory{}, sampleMemory{}
}
