// SPDX-License-Identifier: Apache-2.0

package profilenames

import (
	"bytes"
	"testing"

	"github.com/google/pprof/profile"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"
)

// small is a profile of OpenTelemetry with a frame that has names, one that has none, and one whose line names
// nothing.
func small() *profiles.ProfilesData {
	return &profiles.ProfilesData{
		ResourceProfiles: []*profiles.ResourceProfiles{{SchemaUrl: "u"}},
		Dictionary: &profiles.ProfilesDictionary{
			StringTable:   []string{"", "main", "/bin/a"},
			MappingTable:  []*profiles.Mapping{{}, {MemoryStart: 1 << 12, MemoryLimit: 1 << 13, FilenameStrindex: 2}},
			FunctionTable: []*profiles.Function{{}, {NameStrindex: 1}},
			LocationTable: []*profiles.Location{{}, {MappingIndex: 1, Address: 4100, Lines: []*profiles.Line{{FunctionIndex: 1}}}, {MappingIndex: 1, Address: 4101},
				{MappingIndex: 1, Address: 4102, Lines: []*profiles.Line{{Line: 5}}}},
		},
	}
}

func smallPprof(t testing.TB) []byte {
	t.Helper()
	m := &profile.Mapping{ID: 4, Start: 1, Limit: 9, File: "a"}
	f := &profile.Function{ID: 2, Name: "main"}
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "cpu", Unit: "count"}}, Mapping: []*profile.Mapping{m}, Function: []*profile.Function{f}, Location: []*profile.Location{
		{ID: 1, Mapping: m, Address: 3}, {ID: 2, Mapping: m, Address: 4, Line: []profile.Line{{Function: f}}}}}
	var b bytes.Buffer
	if err := p.WriteUncompressed(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzNames gives names to every frame of whatever a profile may be: it can be read again, and has no frames
// without names then.
func FuzzNames(f *testing.F) {
	b, err := proto.Marshal(small())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b, false)
	f.Add(smallPprof(f), true)
	f.Fuzz(func(t *testing.T, data []byte, isPprof bool) {
		format := OTLP
		if isPprof {
			format = Pprof
		}
		p, err := Read(data, format)
		if err != nil {
			return
		}
		a, isWhole := p.Answer(1<<20), true
		for i := range p.Frames {
			inner, ok := a.Function(&Function{Name: "inner", System: "_Zinner", File: "f.c", Start: 3})
			outer, also := a.Function(&Function{Name: "outer", System: "main", File: "/bin/a"})
			if isWhole = isWhole && ok && also; isWhole {
				isWhole = a.SetLines(i, []Line{{inner, 3, 4, true}, {outer, 7, 0, true}})
			}
		}
		var out bytes.Buffer
		if _, err := a.WriteTo(&out); err != nil {
			return
		}
		again, err := Read(out.Bytes(), format)
		if err != nil {
			t.Fatalf("%v: %x", err, out.Bytes())
		}
		if isWhole && (len(again.Frames) > 0 || again.Named != p.Named+len(p.Frames)) {
			t.Errorf("%d frames without names, %d with, expected %d: %x", len(again.Frames), again.Named, p.Named+len(p.Frames), out.Bytes())
		}
	})
}

// TestNamesAreAddedOnce: functions and texts that are there are used, and those that are added are added once.
func TestNamesAreAddedOnce(t *testing.T) {
	b, err := proto.Marshal(small())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Read(b, OTLP)
	if err != nil || len(p.Frames) != 2 || p.Named != 1 {
		t.Fatalf("%v, %+v", err, p)
	}
	a := p.Answer(1 << 20)
	for i := range p.Frames {
		there, _ := a.Function(&Function{Name: "main"})
		added, ok := a.Function(&Function{Name: "main", File: "main.c"})
		if there != 1 || added != 2 || !ok {
			t.Errorf("functions %d and %d, expected 1 and 2", there, added)
		}
		a.SetLines(i, []Line{{Function: added, Line: 9}, {Function: there}})
	}
	var out bytes.Buffer
	if _, err := a.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	want := small()
	d := want.Dictionary
	d.StringTable = append(d.StringTable, "main.c")
	d.FunctionTable = append(d.FunctionTable, &profiles.Function{NameStrindex: 1, FilenameStrindex: 3})
	for _, l := range d.LocationTable[2:] {
		l.Lines = []*profiles.Line{{FunctionIndex: 2, Line: 9}, {FunctionIndex: 1}}
	}
	var got profiles.ProfilesData
	if err := proto.Unmarshal(out.Bytes(), &got); err != nil || !proto.Equal(&got, want) {
		t.Errorf("%v\n%v\nexpected\n%v", err, &got, want)
	}
}

// TestAnswersAreBounded: a frame whose names do not fit has none, and the profile is whole.
func TestAnswersAreBounded(t *testing.T) {
	b, err := proto.Marshal(small())
	if err != nil {
		t.Fatal(err)
	}
	for limit := range 400 {
		p, err := Read(b, OTLP)
		if err != nil {
			t.Fatal(err)
		}
		a := p.Answer(limit)
		for i := range p.Frames {
			if n, ok := a.Function(&Function{Name: "a function with a long name", System: "a_function", File: "file.c"}); ok {
				a.SetLines(i, []Line{{Function: n, Line: 1 << 30, Column: 1 << 30}})
			}
		}
		var out bytes.Buffer
		if _, err := a.WriteTo(&out); err != nil || out.Len() > len(b)+limit+30 {
			t.Errorf("limit %d: %d bytes of %d, %v", limit, out.Len(), len(b), err)
		}
		if err := proto.Unmarshal(out.Bytes(), &profiles.ProfilesData{}); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}
