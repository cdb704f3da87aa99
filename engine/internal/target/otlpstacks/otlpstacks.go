// SPDX-License-Identifier: Apache-2.0

// Package otlpstacks reads profiles of OpenTelemetry (opentelemetry/proto/profiles/v1development),
// as profilers send them and `unwindd profile --format otlp` writes them: a file is one message
// ProfilesData, or several with the length of each before it, in four bytes, the highest first.
package otlpstacks

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/trace"
)

// Form is the name of the format.
const Form = "OpenTelemetry profiles"

// The fields of ProfilesData.
const (
	fieldResources  = 1
	fieldDictionary = 2
)

// maxFields bounds the fields of a message that are looked at to tell the format.
const maxFields = 1 << 16

// Accepts reports whether the bytes of a file may be profiles.
func Accepts(data []byte) bool {
	if isMessage(data) {
		return true
	}
	first, _, ok := framed(data)
	return ok && isMessage(first)
}

// isMessage reports whether bytes are a message with a dictionary and profiles, and nothing else.
func isMessage(data []byte) bool {
	var has [fieldDictionary + 1]bool
	for range maxFields {
		if len(data) == 0 {
			break
		}
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 || kind != protowire.BytesType || number != fieldResources && number != fieldDictionary {
			return false
		}
		field, size := protowire.ConsumeBytes(data[n:])
		if size < 0 || number == fieldDictionary && !isDictionary(field) {
			return false
		}
		has[number] = true
		data = data[n+size:]
	}
	return len(data) == 0 && has[fieldResources] && has[fieldDictionary]
}

// isDictionary reports whether a message begins as a ProfilesDictionary does, whose fields are tables.
func isDictionary(data []byte) bool {
	const tables = 7
	number, kind, n := protowire.ConsumeTag(data)
	return n > 0 && kind == protowire.BytesType && number <= tables
}

// framed returns the first of several messages, and the bytes behind it.
func framed(data []byte) (message, rest []byte, ok bool) {
	if len(data) < 4 {
		return nil, nil, false
	}
	size := uint64(binary.BigEndian.Uint32(data))
	if size == 0 || size > uint64(len(data)-4) {
		return nil, nil, false
	}
	return data[4 : 4+size], data[4+size:], true
}

// Read reads profiles. The error names the path.
func Read(path string, data []byte) (*stacktree.File, error) {
	r := &reader{Builder: stacktree.NewBuilder(path, Form)}
	r.stop = r.Stop(stopText)
	if isMessage(data) {
		if err := r.message(data); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return r.Finish(), nil
	}
	for offset := 0; len(data) > 0; {
		message, rest, ok := framed(data)
		if !ok {
			r.Problem("offset %#x: expected a message and its size before it: what follows is left out", offset)
			break
		}
		if err := r.message(message); err != nil {
			return nil, fmt.Errorf("%s: offset %#x: %w", path, offset, err)
		}
		offset += len(data) - len(rest)
		data = rest
	}
	return r.Finish(), nil
}

// stopText is why stacks end.
var stopText = trace.Stopped{Reason: trace.StopOutermost, Detail: "the stack of the profile ends here"}

// reader reads the messages of a file.
type reader struct {
	*stacktree.Builder
	d         *profiles.ProfilesDictionary // of the message that is read
	locations map[frameKey]uint32
	stacks    map[int32]uint32
	stop      uint16
}

// frameKey is a location of a message, which is exact in the innermost frame.
type frameKey struct {
	location int32
	isLeaf   bool
}

// errIndex is the error for an index of no element of its table.
var errIndex = errors.New("an index of the profile is of no element of its table")

// element returns an element of a table; the zero value for the index 0 and where there is none.
func element[T any](table []*T, index int32) *T {
	if index <= 0 || int(index) >= len(table) || table[index] == nil {
		return new(T)
	}
	return table[index]
}

// text returns a string of the dictionary.
func (r *reader) text(index int32) string {
	if index < 0 || int(index) >= len(r.d.GetStringTable()) {
		return ""
	}
	return r.d.StringTable[index]
}

// message reads a message.
func (r *reader) message(data []byte) error {
	var m profiles.ProfilesData
	if err := proto.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("as a message ProfilesData of OpenTelemetry: %w", err)
	}
	r.d = m.GetDictionary()
	r.locations, r.stacks = map[frameKey]uint32{}, map[int32]uint32{}
	for _, resource := range m.GetResourceProfiles() {
		of := facts{}
		for _, a := range resource.GetResource().GetAttributes() {
			of.add(cmp.Or(a.GetKey(), r.text(a.GetKeyStrindex())), r.value(a.GetValue()))
		}
		for _, scope := range resource.GetScopeProfiles() {
			for _, p := range scope.GetProfiles() {
				if err := r.profile(p, of); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// facts are attributes of a resource, a sample, a location or a mapping, by the names that
// OpenTelemetry's conventions and profilers give them.
type facts struct{ pid, tid, comm, frame, stall, gnu, hash string }

// labelPrefix is the prefix of names that profilers give to labels of samples.
const labelPrefix = "process.context.label."

// add adds an attribute.
func (f *facts) add(key, value string) {
	switch strings.TrimPrefix(key, labelPrefix) {
	case "process.pid":
		f.pid = value
	case "thread.id":
		f.tid = value
	case "thread.name":
		f.comm = value
	case "profile.frame.type":
		f.frame = value
	case "cuda_stall_reason", "unwindd.wave.state":
		f.stall = value
	case "process.executable.build_id.gnu":
		f.gnu = value
	case "process.executable.build_id.htlhash":
		f.hash = value
	}
}

// addAll adds attributes of the dictionary.
func (r *reader) addAll(f *facts, indices []int32) {
	for _, i := range indices {
		a := element(r.d.GetAttributeTable(), i)
		f.add(r.text(a.GetKeyStrindex()), r.value(a.GetValue()))
	}
}

// value is a text or a number of an attribute, as text.
func (r *reader) value(v *common.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10)
	case *common.AnyValue_StringValueStrindex:
		return r.text(v.StringValueStrindex)
	}
	return ""
}

// nanoseconds are how many of them units of time have.
var nanoseconds = map[string]uint64{"nanoseconds": 1, "ns": 1, "microseconds": 1e3, "us": 1e3, "milliseconds": 1e6, "ms": 1e6, "seconds": 1e9, "s": 1e9}

// profile reads the samples of one type.
func (r *reader) profile(p *profiles.Profile, resource facts) error {
	name, unit := r.text(p.GetSampleType().GetTypeStrindex()), r.text(p.GetSampleType().GetUnitStrindex())
	e := trace.ProfileEvent{Name: cmp.Or(name, "samples"), Unit: "count"}
	factor := uint64(1)
	if n, isTime := nanoseconds[unit]; isTime {
		e.Unit, factor = "nanoseconds", n
	}
	device := deviceEvents[name]
	e.Device, e.States = device, device
	if e.Name == "cpu" && e.Unit == "nanoseconds" {
		e.Meaning = "cpu-clock"
	}
	event, ok := r.Event(e)
	if !ok {
		r.Problem("the samples of %s are left out: there are too many events", e.Name)
		return nil
	}
	for _, s := range p.GetSamples() {
		if err := r.sample(s, event, factor, resource); err != nil {
			return err
		}
	}
	return nil
}

// deviceEvents are the types of samples of accelerators, as parca-agent and unwindd name them.
var deviceEvents = map[string]bool{
	"gpu_pcsample": true, "gpu_kernel_time": true, "gpu_time": true, trace.KernelTimeEvent: true, "gpu-pc-sampling": true, "gpu-stall-sampling": true,
}

// sample adds a sample, at each of its times where it has some.
func (r *reader) sample(s *profiles.Sample, event int16, factor uint64, resource facts) error {
	stack, err := r.stack(s.GetStackIndex())
	if err != nil {
		return err
	}
	own := resource
	r.addAll(&own, s.GetAttributeIndices())
	out := trace.ProfileSample{Event: event, Stack: stack, Stop: r.stop, Thread: r.Thread(number(own.pid), number(own.tid), own.comm)}
	if own.stall != "" {
		out.State = r.WarpState(own.stall)
	}
	times, values := s.GetTimestampsUnixNano(), s.GetValues()
	if len(times) > 0 && len(values) > 0 && len(times) != len(values) {
		return fmt.Errorf("a sample has %d times and %d values, expected as many, or none of one", len(times), len(values))
	}
	for i := range max(len(times), len(values)) {
		value := int64(1)
		if len(values) > 0 {
			value = values[i]
		}
		if len(times) > 0 {
			out.Time = times[i]
		}
		if value < 0 {
			return errDifference
		}
		if out.Weight = uint64(value); out.Weight > math.MaxUint64/factor {
			out.Weight = math.MaxUint64
		} else {
			out.Weight *= factor
		}
		if out.Weight > 0 {
			r.Samples = append(r.Samples, out)
		}
	}
	return nil
}

// errDifference is returned for a profile with weights below zero.
var errDifference = errors.New("it has weights below zero, as a difference of profiles: expected a profile")

// number is the number of a process or a thread; -1: none.
func number(text string) int {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n >= 0 {
		return int(n)
	}
	return -1
}

// stack returns the index of a stack.
func (r *reader) stack(index int32) (uint32, error) {
	if stack, ok := r.stacks[index]; ok {
		return stack, nil
	}
	if index < 0 || int(index) >= max(len(r.d.GetStackTable()), 1) {
		return 0, fmt.Errorf("stack %d: %w", index, errIndex)
	}
	var stack uint32
	locations := element(r.d.GetStackTable(), index).GetLocationIndices()
	for i := len(locations) - 1; i >= 0; i-- {
		if locations[i] < 0 || int(locations[i]) >= len(r.d.GetLocationTable()) {
			return 0, fmt.Errorf("location %d of stack %d: %w", locations[i], index, errIndex)
		}
		stack = r.Push(stack, r.frame(locations[i], i == 0))
	}
	r.stacks[index] = stack
	return stack, nil
}

// frame returns the index of the frame of a location.
func (r *reader) frame(location int32, isLeaf bool) uint32 {
	key := frameKey{location, isLeaf}
	index, ok := r.locations[key]
	if ok {
		return index
	}
	l := element(r.d.GetLocationTable(), location)
	m := element(r.d.GetMappingTable(), l.GetMappingIndex())
	var own facts
	r.addAll(&own, l.GetAttributeIndices())
	r.addAll(&own, m.GetAttributeIndices())
	file := r.text(m.GetFilenameStrindex())
	// Addresses are shown, and not looked up: the file of that name may be another one by now.
	f := stacktree.Frame{PID: -1, Dispatched: -1, Exact: isLeaf, Address: l.GetAddress(), Object: file, Kernel: own.frame == "kernel"}
	if start := m.GetMemoryStart(); f.Address >= start && !f.Kernel {
		f.Address = f.Address - start + m.GetFileOffset()
	}
	for i, line := range l.GetLines() {
		if s := r.symbol(line, i < len(l.GetLines())-1); s.Function != "" {
			f.Symbols = append(f.Symbols, s)
		}
	}
	f.Device = strings.HasPrefix(own.frame, "cuda") || own.frame == "gpu" || own.frame == "amdgpu" || own.frame == "intelgpu"
	if id, ok := stacktree.CubinOf(file, own.gnu, own.hash); ok && len(f.Symbols) > 0 && (f.Device || own.frame == "") {
		f.Device, f.ObjectID, f.HasObjectID = true, id, true
		f.Address = l.GetAddress()
	}
	if f.Device && !f.HasObjectID && file == "" && len(f.Symbols) == 1 {
		f.Address = 0
	}
	index = r.Frame(f)
	r.locations[key] = index
	return index
}

// symbol is a function of a location.
func (r *reader) symbol(line *profiles.Line, isInlined bool) trace.Symbol {
	f := element(r.d.GetFunctionTable(), line.GetFunctionIndex())
	s := trace.Symbol{
		LinkageName: r.text(f.GetSystemNameStrindex()), File: r.text(f.GetFilenameStrindex()), Inlined: isInlined,
		Line: stacktree.Position(line.GetLine()), Column: stacktree.Position(line.GetColumn()), StartLine: stacktree.Position(f.GetStartLine()),
	}
	s.Function = cmp.Or(r.text(f.GetNameStrindex()), s.LinkageName)
	if s.LinkageName == s.Function {
		s.LinkageName = ""
	}
	if s.StartLine > 0 {
		s.StartFile = s.File
	}
	return s
}
