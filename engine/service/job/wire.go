// SPDX-License-Identifier: Apache-2.0

package job

import (
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// Wire returns the job as a request to another machine: its kind, and its options with the name
// of the target. ok is false for a job that only this machine does.
func (j *Job) Wire(name string) (kind string, options proto.Message, ok bool) {
	switch {
	case j.Stack != nil:
		o := j.Stack.Wire()
		o.Name = name
		return j.Name(), o, true
	case j.Profile != nil:
		o := j.Profile.Wire()
		o.Name = name
		return j.Name(), o, true
	case j.Snapshot != nil:
		return j.Name(), &pb.SnapshotOptions{Files: j.Snapshot.Files, Name: name}, true
	}
	return "", nil, false
}

// Wire returns the options of a server for the job, which is checked.
func (s *Stack) Wire() *pb.StackOptions {
	o := &pb.StackOptions{
		Format: s.Format, Thread: s.Thread, Crashed: s.Crashed, Top: uint32(s.Top), Registers: s.Registers, Goroutines: s.Goroutines, //nolint:gosec // checked
		Lanes: s.Lanes, Locals: s.Locals, Globals: s.Globals, Depth: uint32(s.Limits.Depth), Elements: uint32(s.Limits.Elements), Raw: s.Limits.Raw, //nolint:gosec // likewise
		Source: uint32(s.Source), Code: uint32(s.Code), NoInlines: s.NoInlines, NoFold: s.NoFold, Signature: s.Signature, SignatureVersion: uint32(s.SignatureVersion), //nolint:gosec // likewise
	}
	if s.Lane >= 0 {
		lane := uint32(s.Lane) //nolint:gosec // likewise
		o.Lane = &lane
	}
	if s.MaxFrames != engine.DefaultMaxFrames {
		frames := uint32(s.MaxFrames) //nolint:gosec // likewise
		o.MaxFrames = &frames
	}
	return o
}

// Wire returns the options of a server for the job, which is checked.
func (p *Profile) Wire() *pb.ProfileOptions {
	o := &pb.ProfileOptions{Format: p.Format, Event: p.Events, NoSymbols: p.NoSymbols, Annotate: p.Annotate, MarkGuesses: p.MarkGuesses}
	if p.MaxStack != engine.DefaultMaxFrames {
		o.MaxStack = uint32(p.MaxStack) //nolint:gosec // likewise
	}
	return o
}
