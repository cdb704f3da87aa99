// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/trace"
)

// The members of a sample (rocprofiler_pc_sampling_record_host_trap_v0_t, which has no
// wave_issued and no snapshot, and rocprofiler_pc_sampling_record_stochastic_v0_t).
const (
	sampleObject = iota
	sampleOffset
	sampleMask
	sampleTime
	sampleDispatch
	sampleCorrelation
	sampleIssued
	sampleReason
	sampleInstruction
)

var sampleFields = []field{
	{path: "record.pc.code_object_id"}, {path: "record.pc.code_object_offset"}, {path: "record.exec_mask"}, {path: "record.timestamp"},
	{path: "record.dispatch_id"}, {path: "record.corr_id.internal"}, {path: "record.wave_issued"}, {path: "record.snapshot.stall_reason", isText: true},
	{path: "inst_index"},
}

// record is a sample as in the file.
type record struct {
	object, offset        uint64 // object 0: offset is the address
	mask, time            uint64 // time 0: unknown
	dispatch, correlation uint64
	instruction           uint64 // ^0: unknown
	state                 int16  // -1: unknown
	hasMask               bool
}

// chunk is a part of an array of samples: whole records, and the bytes between them.
type chunk struct {
	start, end int // offsets in the file
	samples    int // that are not wrong
}

const (
	chunkBytes   = 1 << 20
	chunkSamples = 4096
)

// readSamples goes over an array of samples, and records their offsets, their number and
// their states.
func (p *process) readSamples(r *jsontext.Reader) error {
	s := p.file.newRecords(sampleFields, maxRecord)
	var rec record
	var c *chunk
	said := uint64(0) // the dispatch of the sample before
	state := p.file.state
	return p.each(r, s, func(v *values, offset int) error {
		if c == nil || offset-c.start >= chunkBytes || c.samples >= chunkSamples {
			p.chunks = append(p.chunks, chunk{start: offset, end: offset})
			c = &p.chunks[len(p.chunks)-1]
		}
		if err := rec.read(v, state); err != nil {
			return err
		}
		if rec.dispatch != said {
			p.sampled(rec.dispatch, rec.correlation)
			said = rec.dispatch
		}
		if rec.hasMask {
			p.file.masks++
		}
		c.samples++
		c.end = offset + 1
		return nil
	})
}

// read sets a sample from the members of a record.
func (s *record) read(v *values, state func(reason []byte, isIssued bool) int16) error {
	var ok bool
	if s.object, ok = v.number(sampleObject); !ok {
		return errNoObject
	}
	if s.offset, ok = v.number(sampleOffset); !ok {
		return errNoOffset
	}
	s.mask, s.hasMask = v.number(sampleMask)
	s.time, _ = v.number(sampleTime)
	s.dispatch, _ = v.number(sampleDispatch)
	s.correlation, _ = v.number(sampleCorrelation)
	if s.instruction, ok = v.number(sampleInstruction); !ok { // -1 where there is none
		s.instruction = ^uint64(0)
	}
	s.state = -1
	if issued, ok := v.number(sampleIssued); ok {
		s.state = state(v.text(sampleReason), issued != 0)
	}
	return nil
}

// reasonPrefix is the beginning of the names of all stall reasons
// (rocprofiler_pc_sampling_instruction_not_issued_reason_t).
const reasonPrefix = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_"

const (
	// issued is the state of a wave that issued an instruction.
	issued = "issued"
	// notIssued is the state of a wave that did not, for an unknown reason.
	notIssued = "not_issued"
	maxReason = 64 // bytes
)

// state returns the index of a wave's state; -1 where there are too many.
func (f *File) state(reason []byte, isIssued bool) int16 {
	if isIssued {
		reason = nil
	}
	key := reason
	if isIssued {
		key = issuedKey
	}
	if i, ok := f.states[string(key)]; ok {
		return i
	}
	state := trace.WaveState{Name: stateName(string(reason), isIssued), Stalled: !isIssued}
	i := int16(slices.Index(f.facts.States, state)) //nolint:gosec // there are few
	switch {
	case i >= 0:
	case len(f.facts.States) < gpusamples.MaxStates:
		i = int16(len(f.facts.States)) //nolint:gosec // there are few
		f.facts.States = append(f.facts.States, state)
	default:
		f.problem("there are more than %d stall reasons: %q and others are not told apart", gpusamples.MaxStates, jsontext.Clip(string(reason)))
	}
	if len(f.states) < 2*gpusamples.MaxStates {
		f.states[string(key)] = i
	}
	return i
}

// issuedKey is the key of the state issued, which no reason has.
var issuedKey = []byte{0}

// stateName returns the name of a state.
func stateName(reason string, isIssued bool) string {
	if isIssued {
		return issued
	}
	name := strings.ToLower(strings.TrimPrefix(reason, reasonPrefix))
	if name == "" || name == "none" {
		return notIssued
	}
	return name[:min(len(name), maxReason)]
}

// known returns the index of a state that was seen when the file was opened.
func (f *File) known(reason []byte, isIssued bool) int16 {
	if isIssued {
		reason = issuedKey
	}
	if i, ok := f.states[string(reason)]; ok {
		return i
	}
	return -1
}

// The reasons why a sample is in no known module.
const (
	noObject      = "no element of code_objects describes its code object"
	objectsDiffer = "several elements of code_objects describe its code object, not all alike"
	outsideObject = "its offset is behind the end of its code object as it was loaded"
)

// fill sets a sample from a record.
func (p *process) fill(s *gpusamples.Sample, rec *record) {
	*s = gpusamples.Sample{
		PID: p.pid, Module: -1, Kernel: -1, State: int(rec.state), LaunchIndex: -1,
		Time: rec.time, HasTime: rec.time > 0, Weight: 1,
	}
	p.fillPlace(s, rec)
	if rec.hasMask {
		lanes := p.lanes
		if s.Module >= 0 {
			lanes = p.object(s.Module).lanes
		}
		if rec.mask>>32 != 0 {
			lanes = maxLanes // the processor has waves of both sizes
		}
		s.ActiveLanes, s.Lanes, s.HasLanes = uint32(bits.OnesCount64(rec.mask)), lanes, true //nolint:gosec // at most 64
	}
	s.Instruction, s.Source = p.texts.instruction(rec.instruction)
	facts := &p.file.facts
	if i := p.dispatches.find(rec.dispatch); i >= 0 {
		s.Kernel, s.LaunchIndex = facts.Dispatches[i].Kernel, facts.Dispatches[i].Launch
	} else {
		s.LaunchIndex = p.sampledLaunches.find(rec.dispatch)
	}
	if s.LaunchIndex >= 0 {
		s.Launch = &facts.Launches[s.LaunchIndex]
	}
}

// fillPlace sets the place of a wave.
func (p *process) fillPlace(s *gpusamples.Sample, rec *record) {
	if rec.object == 0 {
		s.PC = rec.offset
		if s.Module, s.Problem = p.places.At(s.PC); s.Module >= 0 {
			s.Offset, s.HasOffset = s.PC-p.object(s.Module).delta, true
		}
		return
	}
	module := p.objects.find(rec.object)
	if module < 0 {
		s.Offset, s.HasOffset, s.Problem = rec.offset, true, noObject
		if _, known := p.objects.get(rec.object); known {
			s.Problem = objectsDiffer
		}
		return
	}
	o := p.object(module)
	s.PC = o.base + rec.offset
	s.Offset, s.HasOffset = s.PC-o.delta, true
	if o.size > 0 && rec.offset >= o.size {
		s.Problem = outsideObject
		return
	}
	s.Module = module
}

// errChanged is the error for a file that changed since it was opened.
var errChanged = errors.New("the file was changed while it was read")

// readChunk reads the samples of a chunk.
func (p *process) readChunk(c *chunk, s *records, into []record) ([]record, error) {
	r := jsontext.Reader{Data: p.file.data, At: c.start}
	state := p.file.known
	for len(into) < c.samples {
		if r.At >= c.end {
			return into, fmt.Errorf("%s: %w", p.file.path, errChanged)
		}
		err := s.next(&r)
		if err != nil && !isWrongRecord(err) {
			return into, fmt.Errorf("%s: %w: %w", p.file.path, errChanged, err)
		}
		var rec record
		if err == nil && rec.read(&s.values, state) == nil {
			into = append(into, rec)
		}
		if r.Next() == ',' {
			r.At++
			r.Next()
		}
	}
	return into, nil
}
