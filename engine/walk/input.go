// SPDX-License-Identifier: Apache-2.0

package walk

// input is the registers and the memory that a walk reads, from a thread of a target or from a
// sample.
type input struct {
	memory  Memory       // of target or of samples
	target  targetMemory // of a thread of a target
	samples sampleMemory // of a sample
	sample  *Sample      // nil: a target is walked
	// saved has the registers in memory that were read; nil: one that is not there.
	saved    map[uint32][]byte
	isMapped bool // the thread's binding maps the default space
	laneUsed bool // evaluated or read state depends on the current lane
	scratch  [8]byte
}

// setTarget makes a process of a target the input.
func (i *input) setTarget(p *Process) {
	i.target = targetMemory{p.state, *p.code.Load()}
	i.memory, i.sample = &i.target, nil
}

// setSample makes a sample of a process the input.
func (i *input) setSample(s *Sample, p *Process) {
	i.samples = sampleMemory{s, s.Code}
	if s.Code == nil {
		i.samples.code = p
	}
	i.memory, i.sample = &i.samples, s
}

// release drops references to the input.
func (i *input) release() {
	i.sample, i.saved = nil, nil
	i.target, i.samples = targetMemory{}, sampleMemory{}
}
