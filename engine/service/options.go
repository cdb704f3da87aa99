// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/value"
)

// This file makes jobs from options, which come by gRPC or as parameters of HTTP.

// setParameters sets the fields of options that parameters of a URL name: both max-frames
// and max_frames set max_frames. A parameter without a value is true.
func setParameters(o proto.Message, parameters url.Values) error {
	m := o.ProtoReflect()
	for name, values := range parameters {
		field := m.Descriptor().Fields().ByName(protoreflect.Name(strings.ReplaceAll(name, "-", "_")))
		if field == nil {
			return badRequest.new(fmt.Sprintf("there is no parameter %q, expected %s", name, parameterNames(m.Descriptor())))
		}
		if !field.IsList() && len(values) > 1 {
			return badRequest.new(fmt.Sprintf("parameter %s is there %d times, expected once", name, len(values)))
		}
		for _, text := range values {
			v, err := parameterValue(field, text)
			if err != nil {
				return badRequest.new(fmt.Sprintf("parameter %s is %q, expected %v", name, text, err))
			}
			if field.IsList() {
				m.Mutable(field).List().Append(v)
			} else {
				m.Set(field, v)
			}
		}
	}
	return nil
}

// parameterNames lists the parameters.
func parameterNames(d protoreflect.MessageDescriptor) string {
	var names []string
	for i := range d.Fields().Len() {
		names = append(names, parameterName(d.Fields().Get(i)))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func parameterName(f protoreflect.FieldDescriptor) string {
	return strings.ReplaceAll(string(f.Name()), "_", "-")
}

// parameterValue parses a value. The error describes the expected value.
func parameterValue(f protoreflect.FieldDescriptor, text string) (v protoreflect.Value, err error) {
	switch f.Kind() {
	case protoreflect.BoolKind:
		is, err := strconv.ParseBool(cmp.Or(text, "true"))
		if err != nil {
			return v, fmt.Errorf("true or false")
		}
		return protoreflect.ValueOfBool(is), nil
	case protoreflect.Uint32Kind:
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return v, fmt.Errorf("a number from 0 to %d", uint32(1<<32-1))
		}
		return protoreflect.ValueOfUint32(uint32(n)), nil
	case protoreflect.Uint64Kind:
		n, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			return v, fmt.Errorf("a number, decimal, or hex with 0x")
		}
		return protoreflect.ValueOfUint64(n), nil
	case protoreflect.Int64Kind:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return v, fmt.Errorf("a number of 64 bits")
		}
		return protoreflect.ValueOfInt64(n), nil
	case protoreflect.BytesKind:
		b, err := hex.DecodeString(text)
		if err != nil {
			return v, fmt.Errorf("bytes in hexadecimal")
		}
		return protoreflect.ValueOfBytes(b), nil
	}
	return protoreflect.ValueOfString(text), nil
}

// maxName bounds the name of a target, in bytes.
const maxName = 200

// nameOf returns the name of a target for reports and messages, which is no path of this
// machine.
func nameOf(text, usual string) string {
	base := path.Base(strings.ReplaceAll(text, `\`, "/"))
	if base == "." || base == ".." || base == "/" || len(base) > maxName {
		return usual
	}
	return base
}

// stackJob makes a job of options. A field of options that is not empty is a flag of the
// command line.
func (s *Server) stackJob(o *pb.StackOptions) (*job.Job, string, error) {
	j := job.NewStack()
	j.Format = cmp.Or(o.Format, "json")
	j.Thread, j.Crashed, j.Top, j.Registers, j.Goroutines = o.Thread, o.Crashed, int(o.Top), o.Registers, o.Goroutines
	j.Lanes, j.Locals, j.Globals, j.Source, j.Code = o.Lanes, o.Locals, o.Globals, int(o.Source), int(o.Code)
	j.NoInlines, j.NoFold, j.Signature, j.Limits = o.NoInlines, o.NoFold, o.Signature, limitsOf(o.Depth, o.Elements, o.Raw)
	j.SignatureVersion = int(min(o.SignatureVersion, math.MaxInt32))
	if o.Lane != nil {
		j.Lane = int(*o.Lane)
	}
	if o.MaxFrames != nil {
		j.MaxFrames = int(*o.MaxFrames)
	}
	err := j.Check(func(flag string) bool {
		f := o.ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(strings.ReplaceAll(flag, "-", "_")))
		return f != nil && o.ProtoReflect().Has(f)
	})
	if j.MaxFrames = min(j.MaxFrames, s.now().Frames); err != nil {
		return nil, "", badRequest.new(err.Error())
	}
	return &job.Job{Stack: &j}, nameOf(o.Name, "target"), nil
}

func (s *Server) profileJob(o *pb.ProfileOptions) (*job.Job, string, error) {
	j := job.NewProfile()
	j.Format, j.Events, j.NoSymbols, j.Annotate = cmp.Or(o.Format, "json"), o.Event, o.NoSymbols, o.Annotate
	j.MarkGuesses = o.MarkGuesses
	if o.MaxStack != 0 {
		j.MaxStack = min(int(o.MaxStack), s.now().Frames)
	}
	if err := j.Check(); err != nil {
		return nil, "", badRequest.new(err.Error())
	}
	return &job.Job{Profile: &j}, nameOf(o.Name, "perf.data"), nil
}

func (s *Server) snapshotJob(o *pb.SnapshotOptions) (*job.Job, string, error) {
	return &job.Job{Snapshot: &job.Snapshot{Files: o.Files}}, nameOf(o.Name, "target"), nil
}

// maxEvaluation bounds the options of an evaluation, in bytes of JSON: a worker gets them in
// one message.
const maxEvaluation = 96 << 10

// evaluateJob makes a job of options. They are checked later, when it is known whether
// there is a target.
func evaluateJob(o *pb.EvaluateOptions) (*job.Job, string, error) {
	j := job.NewEvaluate()
	j.Format, j.Arch, j.Expr, j.Thread, j.Frame = cmp.Or(o.Format, "json"), o.Arch, o.Expr, o.Thread, int(o.Frame)
	j.Registers, j.Memory, j.CFA, j.Iteration, j.Object = o.Reg, o.Mem, o.Cfa, o.Iteration, o.Object
	j.Processor, j.Wave, j.Kind, j.Read, j.Trace = o.Processor, o.Wave, o.Kind, uint64(o.Read), o.Trace
	j.Stack, j.Var, j.Limits = o.Stack, o.Var, limitsOf(o.Depth, o.Elements, o.Raw)
	if o.Lane != nil {
		lane := int64(*o.Lane)
		j.Lane = &lane
	}
	b, err := json.Marshal(&j)
	if err != nil {
		return nil, "", err
	}
	if len(b) > maxEvaluation {
		return nil, "", badRequest.new(fmt.Sprintf("the options have %d bytes as JSON, expected at most %d", len(b), maxEvaluation))
	}
	return &job.Job{Evaluate: &j}, nameOf(o.Name, "target"), nil
}

// limitsOf makes limits of values; 0 stands for the default.
func limitsOf(depth, elements uint32, raw bool) value.Limits {
	return value.Limits{
		Depth: cmp.Or(int(depth), value.DefaultLimits.Depth), Elements: cmp.Or(int(elements), value.DefaultLimits.Elements), Raw: raw,
	}
}

// symbolizeJob makes the job of a stream, from its first batch.
func symbolizeJob(buildID []byte, noInlines, mangled bool) (*job.Job, error) {
	j := job.Symbolize{BuildID: hex.EncodeToString(buildID), NoInlines: noInlines, Mangled: mangled}
	if err := j.Check(); err != nil {
		return nil, badRequest.new(err.Error())
	}
	return &job.Job{Symbolize: &j}, nil
}
