// SPDX-License-Identifier: Apache-2.0

package job

import (
	"maps"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/unwindd/unwindd/engine/internal/value"
)

// The options of jobs are messages of servicepb: flags of the command write to their fields,
// parameters of HTTP set them, and they go over the wire as they are. A field that is not set
// has its default.

// Field returns the field of options that a flag or a parameter names: both max-frames and
// max_frames name max_frames. It returns nil where there is none.
func Field(m protoreflect.Message, name string) protoreflect.FieldDescriptor {
	return m.Descriptor().Fields().ByName(protoreflect.Name(strings.ReplaceAll(name, "-", "_")))
}

// Range has the numbers that an option may be.
type Range struct {
	Least, Most int64 // Most unbounded: there is no bound
	OrUnset     bool  // 0 leaves the option at its default
}

const unbounded = math.MaxInt64

// Check refuses a number in the words of a flag.
func (r Range) Check(flag string, n int64) error {
	switch {
	case n >= r.Least && n <= r.Most, n == 0 && r.OrUnset:
		return nil
	case r.Most == unbounded:
		return wrong("--%s %d: expected %d or more", flag, n, r.Least)
	}
	return wrong("--%s %d: expected %d to %d", flag, n, r.Least, r.Most)
}

// Ranges are the ranges of options, by their flags.
type Ranges map[string]Range

// check refuses options that are set to numbers out of their ranges.
func (ranges Ranges) check(o proto.Message) error {
	m := o.ProtoReflect()
	for _, flag := range slices.Sorted(maps.Keys(ranges)) {
		field := Field(m, flag)
		if !m.Has(field) {
			continue
		}
		n, isSigned := m.Get(field).Interface().(int64)
		if !isSigned {
			n = int64(m.Get(field).Uint()) //nolint:gosec // it has 32 bits
		}
		if err := ranges[flag].Check(flag, n); err != nil {
			return err
		}
	}
	return nil
}

// LimitRanges are the ranges of the options that bound the printing of variables.
var LimitRanges = Ranges{"depth": {Least: 1, Most: value.MaxDepth}, "elements": {Least: 1, Most: value.MaxElements}}

// refuse refuses the options of flags where they are set: another option does not go with them.
func refuse(o proto.Message, flags []string, other string) error {
	m := o.ProtoReflect()
	for _, flag := range flags {
		if m.Has(Field(m, flag)) {
			return wrong("--%s: %s has no place for it", flag, other)
		}
	}
	return nil
}

// checkFormat refuses a format that is not among formats.
func checkFormat(format string, formats []string) error {
	if slices.Contains(formats, format) {
		return nil
	}
	return wrong("--format %s: expected %s", format, inWords(formats))
}
