// SPDX-License-Identifier: Apache-2.0

package otlpstacks

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/trace"
)

// small has a stack with an inlined call, code without a name, and a kernel.
func small() *profiles.ProfilesData {
	str := func(i int32) *common.AnyValue {
		return &common.AnyValue{Value: &common.AnyValue_StringValueStrindex{StringValueStrindex: i}}
	}
	d := &profiles.ProfilesDictionary{
		StringTable: []string{"", "cpu", "milliseconds", "/bin/a", "main", "leaf(int)", "_Z4leafi", "a.c", "profile.frame.type", "kernel", "thread.name", "worker",
			"cubin-0000000000000001", "scale", "cuda-pc", "cuda_stall_reason", "smsp__pcsamp_warps_issue_stalled_selected_not_issued", "[kernel]", "sys_read"},
		AttributeTable: []*profiles.KeyValueAndUnit{{}, {KeyStrindex: 8, Value: str(9)}, {KeyStrindex: 10, Value: str(11)}, {KeyStrindex: 8, Value: str(14)}, {KeyStrindex: 15, Value: str(16)}},
		MappingTable:   []*profiles.Mapping{{}, {MemoryStart: 0x1000, MemoryLimit: 0x2000, FileOffset: 0x100, FilenameStrindex: 3}, {FilenameStrindex: 12}, {FilenameStrindex: 17}},
		FunctionTable:  []*profiles.Function{{}, {NameStrindex: 4, SystemNameStrindex: 4, FilenameStrindex: 7, StartLine: 3}, {NameStrindex: 5, SystemNameStrindex: 6}, {SystemNameStrindex: 13}, {NameStrindex: 18}},
		LocationTable: []*profiles.Location{{},
			{MappingIndex: 1, Address: 0x1010, Lines: []*profiles.Line{{FunctionIndex: 2, Line: 7}, {FunctionIndex: 1, Line: 4}}},
			{MappingIndex: 1, Address: 0x1020},
			{MappingIndex: 2, Address: 0x40, AttributeIndices: []int32{3}, Lines: []*profiles.Line{{FunctionIndex: 3}}},
			{MappingIndex: 3, Address: 0xffffffff81000000, AttributeIndices: []int32{1}, Lines: []*profiles.Line{{FunctionIndex: 4}}}},
		StackTable: []*profiles.Stack{{}, {LocationIndices: []int32{2, 1}}, {LocationIndices: []int32{3, 1}}, {LocationIndices: []int32{4, 1}}},
	}
	return &profiles.ProfilesData{Dictionary: d, ResourceProfiles: []*profiles.ResourceProfiles{{ScopeProfiles: []*profiles.ScopeProfiles{{Profiles: []*profiles.Profile{{
		SampleType: &profiles.ValueType{TypeStrindex: 1, UnitStrindex: 2},
		Samples: []*profiles.Sample{
			{StackIndex: 1, Values: []int64{2, 3}, TimestampsUnixNano: []uint64{10, 20}, AttributeIndices: []int32{2}},
			{StackIndex: 2, Values: []int64{1}, AttributeIndices: []int32{4}},
			{StackIndex: 3, TimestampsUnixNano: []uint64{30}},
			{Values: []int64{0}},
		},
	}}}}}}}
}

func marshalled(t testing.TB, m *profiles.ProfilesData) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// text are the samples of a file.
func text(f *stacktree.File) (lines []string) {
	for _, s := range f.Samples {
		line := fmt.Sprintf("%s %d at %d state %d %q", f.Events[s.Event].Name, s.Weight, s.Time, s.State, f.Threads[s.Thread].Comm)
		for n := s.Stack; n != 0; n = f.Stacks[n].Caller {
			frame := &f.Frames[f.Stacks[n].Frame]
			line += fmt.Sprintf(" %s+%#x", frame.Object, frame.Address)
			for _, symbol := range frame.Symbols {
				line += fmt.Sprintf(":%s:%d", symbol.Function, symbol.Line)
			}
			if frame.HasObjectID {
				line += fmt.Sprintf(" in cubin %d", frame.ObjectID)
			}
			if frame.Kernel {
				line += " kernel"
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// TestRead reads a message, and two of them with their sizes.
func TestRead(t *testing.T) {
	message := marshalled(t, small())
	want := []string{
		`cpu 2000000 at 10 state 0 "worker" /bin/a+0x120 /bin/a+0x110:leaf(int):7:main:4`,
		`cpu 3000000 at 20 state 0 "worker" /bin/a+0x120 /bin/a+0x110:leaf(int):7:main:4`,
		`cpu 1000000 at 0 state 1 "" cubin-0000000000000001+0x40:scale:0 in cubin 1 /bin/a+0x110:leaf(int):7:main:4`,
		`cpu 1000000 at 30 state 0 "" [kernel]+0xffffffff81000000:sys_read:0 kernel /bin/a+0x110:leaf(int):7:main:4`,
	}
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
	for name, c := range map[string]struct {
		data  []byte
		times int
	}{"one": {message, 1}, "two": {append(frame[:len(frame):len(frame)], frame...), 2}} {
		if !Accepts(c.data) {
			t.Errorf("%s is not accepted", name)
		}
		f, err := Read("f", c.data)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Check(); err != nil || len(f.Problems) > 0 {
			t.Errorf("%s: %v, problems %q", name, err, f.Problems)
		}
		var expected []string
		for range c.times {
			expected = append(expected, want...)
		}
		if diff := cmp.Diff(expected, text(f)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if diff := cmp.Diff([]trace.WaveState{{Name: "selected_not_issued"}}, f.States); diff != "" {
			t.Errorf("%s: states (-want +got)\n%s", name, diff)
		}
		if f.Events[0].Meaning != "cpu-clock" {
			t.Errorf("%s: event %+v", name, f.Events[0])
		}
	}
}

// TestOtherFiles are not accepted: text, a profile of pprof, a message without a dictionary.
func TestOtherFiles(t *testing.T) {
	whole := small()
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte("main;leaf 3\n"), "pprof": {0x0a, 4, 8, 1, 16, 2, 0x32, 0}, "a cut message": marshalled(t, whole)[:50],
		"no dictionary": marshalled(t, &profiles.ProfilesData{ResourceProfiles: whole.ResourceProfiles}),
		"no profiles":   marshalled(t, &profiles.ProfilesData{Dictionary: whole.Dictionary}),
		"ELF":           []byte("\x7fELF\x02\x01\x01\x00"), "zeros": make([]byte, 64),
	} {
		if Accepts(data) {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestBadMessages: indices that lie are an error, or mean nothing.
func TestBadMessages(t *testing.T) {
	for _, c := range []struct {
		what, problem string
		change        func(m *profiles.ProfilesData, p *profiles.Profile)
	}{
		{"a stack", "stack 9: an index of the profile is of no element", func(_ *profiles.ProfilesData, p *profiles.Profile) { p.Samples[0].StackIndex = 9 }},
		{"a stack below zero", "stack -1: an index", func(_ *profiles.ProfilesData, p *profiles.Profile) { p.Samples[0].StackIndex = -1 }},
		{"a location", "location 77 of stack 1", func(m *profiles.ProfilesData, _ *profiles.Profile) {
			m.Dictionary.StackTable[1].LocationIndices[0] = 77
		}},
		{"times", "2 times and 1 values", func(_ *profiles.ProfilesData, p *profiles.Profile) { p.Samples[0].Values = p.Samples[0].Values[:1] }},
		{"a weight", "weights below zero", func(_ *profiles.ProfilesData, p *profiles.Profile) { p.Samples[0].Values[0] = -1 }},
		{"names", "", func(m *profiles.ProfilesData, p *profiles.Profile) {
			m.Dictionary.LocationTable[1].MappingIndex, m.Dictionary.LocationTable[1].Lines[0].FunctionIndex = -7, 99
			m.Dictionary.FunctionTable[1].NameStrindex, p.SampleType.TypeStrindex = 1<<30, -1
			p.Samples[0].AttributeIndices = []int32{-1, 1 << 30}
		}},
	} {
		m := small()
		c.change(m, m.ResourceProfiles[0].ScopeProfiles[0].Profiles[0])
		_, err := Read("f", marshalled(t, m))
		if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("%s: %v, expected %q", c.what, err, c.problem)
		}
	}
	message := marshalled(t, small())
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
	f, err := Read("f", append(frame, 0, 0, 1))
	if err != nil || len(f.Samples) != 4 || len(f.Problems) != 1 || !strings.Contains(f.Problems[0], fmt.Sprintf("offset %#x: expected a message", len(frame))) {
		t.Errorf("%v, %+v", err, f)
	}
}

// TestCubinOf takes the numbers of cubins alone for such.
func TestCubinOf(t *testing.T) {
	const gnu, none = "d2e0a1b2c3d4e5f60718", uint64(1 << 63)
	for _, c := range []struct {
		name, gnu, hash string
		want            uint64
	}{
		{"cubin-000000003ae994c7", "", "", 0x3ae994c7}, {"cubin-000000003ae994c7:_Z3addPi", "", "", 0x3ae994c7}, {"gpu", "000000003ae994c7", "", 0x3ae994c7},
		{"", "", "000000003ae994c70000000000000000", 0x3ae994c7}, {"/bin/a", gnu, "", none}, {"cubin-of-sugar", "", "", none},
		{"/bin/a", "8f3ae994c7000000", "", none}, {"/bin/a", "", "000000003ae994c70000000000000001", none}, {"/bin/a", "", "", none},
	} {
		id, ok := stacktree.CubinOf(c.name, c.gnu, c.hash)
		if ok != (c.want != none) || ok && id != c.want {
			t.Errorf("%+v: %#x, %v", c, id, ok)
		}
	}
}

// FuzzRead reads whatever a file may have.
func FuzzRead(f *testing.F) {
	message := marshalled(f, small())
	f.Add(message)
	f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = Accepts(data)
		file, err := Read("f", data)
		if err != nil {
			return
		}
		if err := file.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
