// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/unwindd/unwindd/engine/service/internal/worker"
	"github.com/unwindd/unwindd/engine/service/job"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// This file makes jobs from options, which come by gRPC or as parameters of HTTP.

// setParameters sets the fields of options that parameters of a URL name: both max-frames
// and max_frames set max_frames. A parameter without a value is true.
func setParameters(o proto.Message, parameters url.Values) error {
	m := o.ProtoReflect()
	for name, values := range parameters {
		field := job.Field(m, name)
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

// work makes the request to a worker that options ask for. Its input is missing.
func (s *Server) work(options proto.Message) (*worker.Request, error) {
	j, name := &job.Job{}, ""
	var err error
	switch o := options.(type) {
	case *pb.StackOptions:
		o.Name, o.Format = nameOf(o.Name, "target"), cmp.Or(o.Format, "json")
		j.Stack, name = &job.Stack{StackOptions: o}, o.Name
		err = j.Stack.Check()
		j.Stack.BoundFrames(s.now().Frames)
	case *pb.WalkOptions:
		if o.Stack == nil {
			o.Stack = &pb.StackOptions{}
		}
		if _, err := s.work(o.Stack); err != nil {
			return nil, err
		}
		j.Walk, name = &job.Walk{WalkOptions: o}, "target"
		err = j.Walk.Check()
	case *pb.ProfileOptions:
		o.Name, o.Format = nameOf(o.Name, "perf.data"), cmp.Or(o.Format, "json")
		o.MaxStack = uint32(min(int(o.MaxStack), s.now().Frames)) //nolint:gosec // positive
		j.Profile, name = &job.Profile{ProfileOptions: o}, o.Name
		err = j.Profile.Check()
	case *pb.SnapshotOptions:
		o.Name = nameOf(o.Name, "target")
		j.Snapshot, name = &job.Snapshot{SnapshotOptions: o}, o.Name
	case *pb.CompareOptions:
		o.Name = nameOf(o.Name, "target")
		j.Compare, name = &job.Compare{CompareOptions: o}, o.Name
		err = j.Compare.Check()
	case *pb.EvaluateOptions:
		o.Name, o.Format = nameOf(o.Name, "target"), cmp.Or(o.Format, "json")
		j.Evaluate, name = &job.Evaluate{EvaluateOptions: o}, o.Name
		err = checkEvaluation(j.Evaluate)
	case *pb.SymbolizeRequest:
		j.Symbolize, name = &job.Symbolize{SymbolizeRequest: o}, "addresses"
		err = j.Symbolize.Check()
	case *pb.SymbolQuestionOptions:
		j.SymbolQuestions, name = &job.SymbolQuestions{SymbolQuestionOptions: o}, "questions"
		err = j.SymbolQuestions.Check()
	case *pb.SymbolizeProfileOptions:
		j.SymbolizeProfile, name = &job.SymbolizeProfile{SymbolizeProfileOptions: o}, "profile"
		err = j.SymbolizeProfile.Check()
	case *pb.ArchitecturesRequest:
		j.Architectures, name = &job.Architectures{}, "architectures"
	}
	if err != nil {
		return nil, badRequest.new(err.Error())
	}
	return &worker.Request{Job: j, Name: name}, nil
}

// maxEvaluation bounds the options of an evaluation, in bytes of JSON: a worker gets them in
// one message.
const maxEvaluation = 96 << 10

// checkEvaluation refuses options that are too long. The others are checked later, when it is
// known whether there is a target.
func checkEvaluation(e *job.Evaluate) error {
	b, err := json.Marshal(e)
	if err == nil && len(b) > maxEvaluation {
		err = fmt.Errorf("the options have %d bytes as JSON, expected at most %d", len(b), maxEvaluation)
	}
	return err
}
