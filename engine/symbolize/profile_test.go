// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// The executable of a crash, whose code is at 0x401000 in memory and at 0x1000 in the file.
const (
	crashServer = "../../examples/crash/server"
	crashID     = "01092ed6fbfc989c60cdda4dd2cc30a56e23db6d"
	crashCode   = 0x401000
	crashSize   = 0x1000
)

// made is a profile of OpenTelemetry under construction.
type made struct{ d *profiles.ProfilesDictionary }

func newMade() *made {
	return &made{&profiles.ProfilesDictionary{
		StringTable: []string{""}, AttributeTable: []*profiles.KeyValueAndUnit{{}}, MappingTable: []*profiles.Mapping{{}},
		FunctionTable: []*profiles.Function{{}}, LocationTable: []*profiles.Location{{}}, StackTable: []*profiles.Stack{{}}, LinkTable: []*profiles.Link{{}},
	}}
}

func (m *made) text(s string) int32 {
	for i, have := range m.d.StringTable {
		if have == s {
			return int32(i)
		}
	}
	m.d.StringTable = append(m.d.StringTable, s)
	return int32(len(m.d.StringTable) - 1)
}

func (m *made) attribute(key, value string) int32 {
	a := &profiles.KeyValueAndUnit{KeyStrindex: m.text(key), Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
	m.d.AttributeTable = append(m.d.AttributeTable, a)
	return int32(len(m.d.AttributeTable) - 1)
}

func (m *made) mapping(start, limit, offset uint64, file string, attributes ...int32) int32 {
	m.d.MappingTable = append(m.d.MappingTable, &profiles.Mapping{MemoryStart: start, MemoryLimit: limit, FileOffset: offset, FilenameStrindex: m.text(file), AttributeIndices: attributes})
	return int32(len(m.d.MappingTable) - 1)
}

func (m *made) location(mapping int32, address uint64, attributes ...int32) {
	m.d.LocationTable = append(m.d.LocationTable, &profiles.Location{MappingIndex: mapping, Address: address, AttributeIndices: attributes})
}

// data encodes the profile, with a sample of all locations and with fields that are not known.
func (m *made) data(t testing.TB) []byte {
	t.Helper()
	stack := &profiles.Stack{}
	for i := range m.d.LocationTable[1:] {
		stack.LocationIndices = append(stack.LocationIndices, int32(i+1))
	}
	m.d.StackTable = append(m.d.StackTable[:1], stack)
	m.d.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "of the dictionary"))
	last := m.d.LocationTable[len(m.d.LocationTable)-1]
	last.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 98, protowire.VarintType), 7))
	out := &profiles.ProfilesData{Dictionary: m.d, ResourceProfiles: []*profiles.ResourceProfiles{{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{{Key: "process.pid", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: 3}}}}},
		ScopeProfiles: []*profiles.ScopeProfiles{{Profiles: []*profiles.Profile{{
			SampleType: &profiles.ValueType{TypeStrindex: m.text("samples"), UnitStrindex: m.text("count")},
			Samples:    []*profiles.Sample{{StackIndex: 1, Values: []int64{4}}},
		}}}},
	}}}
	b, err := proto.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return protowire.AppendString(protowire.AppendTag(b, 77, protowire.BytesType), "of the message")
}

// name names a profile by the files in folders.
func name(t testing.TB, s *Symbolizer, data []byte, finder object.Finder) ([]byte, NamedProfile) {
	t.Helper()
	var out bytes.Buffer
	n, err := s.Profile(t.Context(), &out, data, ProfileOptions{Finder: finder})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), n
}

func crashFinder() object.Finder {
	return object.Finder{Sysroot: filepath.Dir(crashServer), Provided: map[string]string{}, DebugDirs: []string{filepath.Dir(crashServer)}}
}

func newProfileSymbolizer(t testing.TB) *Symbolizer {
	s := New(Options{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// chains are the functions and lines of all locations.
func chains(t testing.TB, data []byte) (list []string) {
	t.Helper()
	var m profiles.ProfilesData
	if err := proto.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	d := m.GetDictionary()
	for _, l := range d.LocationTable {
		text := ""
		for _, line := range l.Lines {
			f := d.FunctionTable[line.FunctionIndex]
			text += fmt.Sprintf("%s %s %s:%d:%d from %d;", d.StringTable[f.NameStrindex], d.StringTable[f.SystemNameStrindex], d.StringTable[f.FilenameStrindex], line.Line, line.Column, f.StartLine)
		}
		list = append(list, text)
	}
	return list
}

// checkTables reports what is twice in the tables, and first elements that are not empty.
func checkTables(t testing.TB, data []byte) {
	t.Helper()
	var m profiles.ProfilesData
	if err := proto.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	d := m.GetDictionary()
	for name, list := range map[string][]string{"texts": d.StringTable, "functions": textsOf(d.FunctionTable), "mappings": textsOf(d.MappingTable), "locations": textsOf(d.LocationTable)} {
		seen := map[string]bool{}
		for i, s := range list {
			if seen[s] || i == 0 && s != "" {
				t.Errorf("%s[%d]: %q is there twice, or first", name, i, s)
			}
			seen[s] = true
		}
	}
}

func textsOf[M proto.Message](table []M) (list []string) {
	for _, m := range table {
		b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		list = append(list, string(b))
	}
	return list
}

// TestFramesAreNamedAtEveryKindOfAddress has the same two addresses as a process has them, as the file has
// them in a mapping, and without bounds.
func TestFramesAreNamedAtEveryKindOfAddress(t *testing.T) {
	m := newMade()
	gnu := m.attribute("process.executable.build_id.gnu", crashID)
	const moved = 0x7f1200000000
	for _, mapping := range []struct {
		start, limit, offset, bias uint64
	}{{moved, moved + crashSize, 0x1000, moved - crashCode}, {crashCode, crashCode + crashSize, 0x1000, 0}, {0, 0, 0, 0}} {
		n := m.mapping(mapping.start, mapping.limit, mapping.offset, "/somewhere/server", gnu)
		m.location(n, 0x401911+mapping.bias)
		m.location(n, 0x401100+mapping.bias)
	}
	out, n := name(t, newProfileSymbolizer(t), m.data(t), crashFinder())
	if n.Named != 6 || n.Unnamed != 0 || len(n.Problems) > 0 {
		t.Fatalf("%+v", n)
	}
	got := chains(t, out)[1:]
	want := []string{"read_body", "content_length"}
	for i, text := range got {
		if !strings.HasPrefix(text, want[i%2]+" ") || !strings.Contains(text, "/example/server.c:") || text != got[i%2] {
			t.Errorf("location %d: %s, expected %s", i+1, text, want[i%2])
		}
	}
	checkTables(t, out)
}

// TestProfilesKeepWhatIsNotNamed: frames with names, samples and unknown fields are the same bytes, and the
// frames that have no names are counted with the reason.
func TestProfilesKeepWhatIsNotNamed(t *testing.T) {
	m := newMade()
	gnu, other := m.attribute("process.executable.build_id.gnu", crashID), m.attribute("process.executable.build_id.gnu", strings.Repeat("ab", 20))
	python := m.attribute("profile.frame.type", "cpython")
	server := m.mapping(crashCode, crashCode+crashSize, 0x1000, "server", gnu)
	m.location(server, 0x401911)
	m.d.FunctionTable = append(m.d.FunctionTable, &profiles.Function{NameStrindex: m.text("main.work")})
	m.location(server, 0x401912)
	m.d.LocationTable[2].Lines = []*profiles.Line{{FunctionIndex: 1, Line: 3}}
	m.location(m.mapping(0x1000, 0x2000, 0, "libother.so", other), 0x1100)
	m.location(m.mapping(0x1000, 0x2000, 0, "libnone.so"), 0x1100)
	m.location(0, 0x55)
	m.location(0, 3, python)
	m.location(server, 0x999999)
	m.location(server, 0x401910) // with an unknown field
	data := m.data(t)
	out, n := name(t, newProfileSymbolizer(t), data, crashFinder())
	if n.HadNames != 1 || n.Named != 2 || n.Unnamed != 5 {
		t.Errorf("%+v", n)
	}
	all := strings.Join(n.Problems, "\n")
	for _, want := range []string{
		"1 frame of libother.so (build ID abababab", "libother.so: no file with build ID abab", "1 frame of libnone.so: its mapping has no build ID",
		"1 frame: they are in no mapping", "a language runtime runs them", "1 frame of server (build ID 01092ed6fbfc989c60cdda4dd2cc30a56e23db6d): their addresses are outside of the mapping",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("expected %q in\n%s", want, all)
		}
	}
	var before, after profiles.ProfilesData
	for _, x := range []struct {
		data []byte
		m    *profiles.ProfilesData
	}{{data, &before}, {out, &after}} {
		if err := proto.Unmarshal(x.data, x.m); err != nil {
			t.Fatal(err)
		}
	}
	checkTables(t, out)
	for i, l := range after.Dictionary.LocationTable {
		if (i == 1 || i == 8) != (len(l.Lines) == 1) && i != 2 {
			t.Errorf("location %d has %d lines", i, len(l.Lines))
		}
		l.Lines = before.Dictionary.LocationTable[i].Lines
	}
	after.Dictionary.FunctionTable = after.Dictionary.FunctionTable[:2]
	after.Dictionary.StringTable = after.Dictionary.StringTable[:len(before.Dictionary.StringTable)]
	if !proto.Equal(&before, &after) {
		t.Errorf("more has changed:\n%v\n%v", &before, &after)
	}
}

// TestNamelessLinesAreReplaced: a line that names no function is none.
func TestNamelessLinesAreReplaced(t *testing.T) {
	m := newMade()
	server := m.mapping(crashCode, crashCode+crashSize, 0x1000, "server", m.attribute("process.executable.build_id.gnu", crashID))
	m.location(server, 0x401911)
	m.d.LocationTable[1].Lines = []*profiles.Line{{}, {FunctionIndex: 0, Line: 5}}
	out, n := name(t, newProfileSymbolizer(t), m.data(t), crashFinder())
	if got := chains(t, out)[1]; n.Named != 1 || strings.Count(got, ";") != 1 || !strings.HasPrefix(got, "read_body ") {
		t.Errorf("%+v, %s", n, got)
	}
}

// TestFramesOfPprofAreNamed names a profile of pprof, which its own library reads and writes.
func TestFramesOfPprofAreNamed(t *testing.T) {
	const moved = 0x555500000000
	mapping := &profile.Mapping{ID: 7, Start: moved, Limit: moved + crashSize, Offset: 0x1000, File: "/somewhere/server", BuildID: crashID}
	partly := &profile.Mapping{ID: 3, Start: 1, Limit: 2, File: "libother.so", BuildID: "abab"}
	known := &profile.Function{ID: 1 << 40, Name: "known"}
	at := func(id, address uint64, lines ...profile.Line) *profile.Location {
		return &profile.Location{ID: id, Mapping: mapping, Address: address, Line: lines}
	}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "cpu", Unit: "nanoseconds"}}, Mapping: []*profile.Mapping{mapping, partly}, Function: []*profile.Function{known},
		Location: []*profile.Location{at(5, moved+0x911), at(9, moved+0x100), at(2, moved+0x910, profile.Line{Function: known, Line: 3}), {ID: 1, Mapping: partly, Address: 1}},
	}
	p.Sample = []*profile.Sample{{Value: []int64{3}, Location: p.Location, Label: map[string][]string{"k": {"v"}}}}
	var packed bytes.Buffer
	if err := p.Write(&packed); err != nil {
		t.Fatal(err)
	}
	out, n := name(t, newProfileSymbolizer(t), packed.Bytes(), crashFinder())
	if n.HadNames != 1 || n.Named != 2 || n.Unnamed != 1 {
		t.Errorf("%+v", n)
	}
	if !bytes.HasPrefix(out, gzipMagic) {
		t.Errorf("it is not packed: %x", out[:4])
	}
	named, err := profile.ParseData(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := named.CheckValid(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range named.Sample[0].Location {
		text := fmt.Sprintf("%#x", l.Address-moved)
		for _, line := range l.Line {
			text += fmt.Sprintf(" %s %s", line.Function.Name, line.Function.Filename)
		}
		got = append(got, text)
	}
	if diff := cmp.Diff([]string{"0x911 read_body /example/server.c", "0x100 content_length /example/server.c read_body.cold /example/server.c", "0x910 known ", "0xffffaaab00000001"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if m := named.Mapping[0]; !m.HasFunctions || m.HasLineNumbers || named.Mapping[1].HasFunctions {
		t.Errorf("%+v, %+v", m, named.Mapping[1])
	}
	if diff := cmp.Diff(p.Sample[0].Label, named.Sample[0].Label); diff != "" {
		t.Error(diff)
	}
}

// TestPackedAndFramedProfilesStayThat names a stream of messages, and packed ones.
func TestPackedAndFramedProfilesStayThat(t *testing.T) {
	m := newMade()
	m.location(m.mapping(crashCode, crashCode+crashSize, 0x1000, "server", m.attribute("process.executable.build_id.gnu", crashID)), 0x401911)
	one := m.data(t)
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(one))), one...)
	frames := append(bytes.Clone(frame), frame...)
	s := newProfileSymbolizer(t)
	plain, _ := name(t, s, one, crashFinder())
	framed, n := name(t, s, frames, crashFinder())
	want := append(binary.BigEndian.AppendUint32(nil, uint32(len(plain))), plain...)
	if !bytes.Equal(framed, append(bytes.Clone(want), want...)) || n.Named != 2 {
		t.Errorf("%+v, %d bytes", n, len(framed))
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(one)
	_ = z.Close()
	out, _ := name(t, s, packed.Bytes(), crashFinder())
	r, err := gzip.NewReader(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := io.ReadAll(r); err != nil || !bytes.Equal(again, plain) {
		t.Errorf("%v, %d bytes, expected %d", err, len(again), len(plain))
	}
}

// TestFilesThatComeLaterAreFound: a missing file is believed to be missing for a while only.
func TestFilesThatComeLaterAreFound(t *testing.T) {
	m := newMade()
	m.location(m.mapping(crashCode, crashCode+crashSize, 0x1000, "server", m.attribute("process.executable.build_id.gnu", crashID)), 0x401911)
	data, dir := m.data(t), t.TempDir()
	finder := object.Finder{Sysroot: dir, DebugDirs: []string{dir}}
	s := newProfileSymbolizer(t)
	now := time.Now()
	s.profiles.now = func() time.Time { return now }
	if out, n := name(t, s, data, finder); n.Named != 0 || n.Unnamed != 1 || !bytes.Equal(out, data) {
		t.Errorf("%+v", n)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".build-id", crashID[:2]), 0o700); err != nil {
		t.Fatal(err)
	}
	exe, err := os.ReadFile(crashServer)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".build-id", crashID[:2], crashID[2:]), exe, 0o600); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * maxBelieved)
	if _, n := name(t, s, data, finder); n.Named != 1 {
		t.Errorf("%+v", n)
	}
}

// TestDamagedProfilesAreRefused with the field that is wrong.
func TestDamagedProfilesAreRefused(t *testing.T) {
	for _, c := range []struct {
		problem string
		change  func(m *made)
	}{
		{"location_table[1].mapping_index: 9: expected an index of mapping_table, which has 2", func(m *made) { m.d.LocationTable[1].MappingIndex = 9 }},
		{"location_table[1].mapping_index: -1: expected an index", func(m *made) { m.d.LocationTable[1].MappingIndex = -1 }},
		{"location_table[1].lines.function_index: 5: expected an index of function_table, which has 1", func(m *made) { m.d.LocationTable[1].Lines = []*profiles.Line{{FunctionIndex: 5}} }},
		{"location_table[1].attribute_indices: 77: expected an index of attribute_table", func(m *made) { m.d.LocationTable[1].AttributeIndices = []int32{77} }},
		{"location_table[1]: mapping_table 1.filename_strindex: 99: expected an index of string_table", func(m *made) { m.d.MappingTable[1].FilenameStrindex = 99 }},
		{"location_table[1]: mapping_table 1.attribute_indices: 50: expected an index of attribute_table", func(m *made) { m.d.MappingTable[1].AttributeIndices = []int32{50} }},
		{`string_table[0]: "first", expected no text`, func(m *made) { m.d.StringTable[0] = "first" }},
	} {
		m := newMade()
		m.location(m.mapping(crashCode, crashCode+crashSize, 0x1000, "server", m.attribute("process.executable.build_id.gnu", crashID)), 0x401911)
		c.change(m)
		_, err := newProfileSymbolizer(t).Profile(t.Context(), io.Discard, m.data(t), ProfileOptions{Finder: crashFinder()})
		if err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%v, expected %q", err, c.problem)
		}
	}
	for data, problem := range map[string]string{
		"": "expected a profile", "text of no profile\n": "expected a profile", "\x1f\x8b\x08\x00": "it begins as gzip does",
		"\x0a\x04\x08\x01\x10\x02\x1a\x02\x08\x05\x22\x04\x08\x01\x10\x06": "location[0].mapping_id: 6: no mapping has this number",
		"\x0a\x04\x08\x01\x10\x02\x1a\x02\x08\x05\x1a\x02\x08\x05":         "mapping[1].id: 5, expected a number above zero that no other one has",
		"\x0a\x04\x08\x01\x10\x02\x22\x7f":                                 "as a profile of pprof: offset 0x6",
	} {
		_, err := newProfileSymbolizer(t).Profile(t.Context(), io.Discard, []byte(data), ProfileOptions{})
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: %v, expected %q", data, err, problem)
		}
	}
}

// TestFilesAreKnownByEveryIdentity: by the hash of the eBPF profiler, and files that the user names. A file at
// the path of a mapping is not taken where nothing tells that it is the right one.
func TestFilesAreKnownByEveryIdentity(t *testing.T) {
	o, err := object.Open(crashServer)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	exe, err := filepath.Abs(crashServer)
	if err != nil {
		t.Fatal(err)
	}
	// By sha256sum of the ends of the file and of its size in 8 bytes.
	hash := "4c4bd5dfddd7cfa11cb7ddf406abc400"
	if got := fileHash(o); got != hash {
		t.Errorf("%s, expected %s", got, hash)
	}
	provided := object.Finder{Sysroot: t.TempDir(), Provided: map[string]string{"server": exe}}
	for _, c := range []struct {
		what, key, id, path string
		finder              object.Finder
		problem             string
	}{
		{"a hash", keyHash, hash, "/server", crashFinder(), ""},
		{"another hash", keyHash, strings.Repeat("f0", 16), "/server", crashFinder(), "its hash is another one"},
		{"a Go build ID", keyGo, "a/b/c/d", "/server", crashFinder(), "no file with build ID"},
		{"no ID", "other", "", "/server", crashFinder(), "its mapping has no build ID"},
		{"no ID and a file", "other", "", "/server", provided, ""},
		{"a wrong ID and a file", keyGNU, strings.Repeat("00", 20), "/server", provided, "build ID is " + crashID},
		{"half an ID", keyGNU, "0", "/server", provided, "its build ID is not 2 to 64 bytes in hexadecimal"},
	} {
		m := newMade()
		m.location(m.mapping(crashCode, crashCode+crashSize, 0x1000, c.path, m.attribute(c.key, c.id)), 0x401911)
		_, n := name(t, newProfileSymbolizer(t), m.data(t), c.finder)
		if all := strings.Join(n.Problems, "\n"); (n.Named == 1) != (c.problem == "") || !strings.Contains(all, c.problem) {
			t.Errorf("%s: %+v, expected %q", c.what, n, c.problem)
		}
	}
}

// The attributes of mappings.
const (
	keyGNU  = "process.executable.build_id.gnu"
	keyGo   = "process.executable.build_id.go"
	keyHash = "process.executable.build_id.htlhash"
)

// FuzzProfile names whatever a profile may be: the result is a profile, too.
func FuzzProfile(f *testing.F) {
	m := newMade()
	m.location(m.mapping(crashCode, crashCode+crashSize, 0x1000, "server", m.attribute(keyGNU, crashID)), 0x401911)
	one := m.data(f)
	f.Add(one)
	f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(len(one))), one...))
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("\x0a\x04\x08\x01\x10\x02\x1a\x04\x08\x05\x28\x01\x22\x06\x08\x01\x10\x05\x18\x06\x32\x00\x32\x01a\x32\x01b"))
	_ = z.Close()
	f.Add(packed.Bytes())
	s := newProfileSymbolizer(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		n, err := s.Profile(t.Context(), &out, data, ProfileOptions{Finder: crashFinder(), MaxUnpacked: 1 << 20})
		if err != nil {
			return
		}
		again, err := s.Profile(t.Context(), io.Discard, out.Bytes(), ProfileOptions{Finder: crashFinder(), MaxUnpacked: 1 << 24})
		if err != nil || again.HadNames != n.HadNames+n.Named || again.Unnamed != n.Unnamed {
			t.Errorf("%+v, then %+v, %v", n, again, err)
		}
	})
}

// BenchmarkWarmProfile names 50,000 frames of one file, whose names are known.
func BenchmarkWarmProfile(b *testing.B) {
	const frames = 50_000
	m := newMade()
	code := m.mapping(crashCode, crashCode+0x8b000, 0x1000, "server", m.attribute(keyGNU, crashID))
	for i := range uint64(frames) {
		m.location(code, crashCode+i*11)
	}
	data, s := m.data(b), newProfileSymbolizer(b)
	_, n := name(b, s, data, crashFinder())
	b.ReportMetric(float64(n.Named), "named")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Profile(b.Context(), io.Discard, data, ProfileOptions{Finder: crashFinder()}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(frames*b.N)/b.Elapsed().Seconds(), "frames/s")
}

// TestKernelsAreNamedByTheNumberOfTheirCubin: the frames of a GPU have the kernel's symbol alone, and count from
// it. The cubin is a file, or in the file of another mapping.
func TestKernelsAreNamedByTheNumberOfTheirCubin(t *testing.T) {
	const cubin = "../internal/symbol/dwarf/testdata/cubin/sum75.cubin"
	o, err := object.Open(cubin)
	if err != nil {
		t.Fatal(err)
	}
	id, ok := o.CubinID()
	if _ = o.Close(); !ok {
		t.Fatal("it is no cubin")
	}
	kernel := func(m *made, mapping int32, address uint64, system string) {
		m.d.FunctionTable = append(m.d.FunctionTable, &profiles.Function{SystemNameStrindex: m.text(system)})
		m.location(mapping, address, m.attribute("profile.frame.type", "cuda-pc"))
		m.d.LocationTable[len(m.d.LocationTable)-1].Lines = []*profiles.Line{{FunctionIndex: int32(len(m.d.FunctionTable) - 1)}}
	}
	m := newMade()
	code := m.mapping(0, 0, 0, "", m.attribute(keyGNU, fmt.Sprintf("%016x", id)))
	kernel(m, code, 0x60, "_Z5oftenPii")
	kernel(m, code, 0, "_Z5never")
	kernel(m, code, 1<<20, "_Z5oftenPii")
	kernel(m, m.mapping(0, 0, 0, "", m.attribute(keyGNU, "0000000000000007")), 0x60, "_Z5oftenPii")
	kernel(m, m.mapping(0, 0, 0, "lib.so", m.attribute(keyGNU, crashID)), 0x60, "of_a_symbolizer")
	var out bytes.Buffer
	n, err := newProfileSymbolizer(t).Profile(t.Context(), &out, m.data(t), ProfileOptions{Finder: object.Finder{Sysroot: t.TempDir()}, Objects: []string{cubin}})
	if err != nil {
		t.Fatal(err)
	}
	want := "square(int) _Z6squarei /src/kernels/sum.cuh:1:0 from 0;int clamp<int>(int, int) _Z5clampIiET_S0_S0_ /src/kernels/sum.cuh:2:0 from 0;often(int*, int) _Z5oftenPii /src/kernels/sum.cu:20:0 from 0;"
	if got := chains(t, out.Bytes())[1]; n.Named != 1 || n.HadNames != 1 || got != want {
		t.Errorf("%+v, %s\nexpected %s", n, got, want)
	}
	all := strings.Join(n.Problems, "\n")
	for _, problem := range []string{`the cubin has no function "_Z5never"`, `offset 0x100000 of function "_Z5oftenPii", which has the size 0x`, "no cubin with its number is in a file that is known"} {
		if !strings.Contains(all, problem) {
			t.Errorf("expected %q in\n%s", problem, all)
		}
	}
}

// TestKernelsAreFoundInTheProgramsOfTheProfile: an executable that the profile has a mapping of has its cubins
// inside.
func TestKernelsAreFoundInTheProgramsOfTheProfile(t *testing.T) {
	oracle.Tools(t, "objcopy")
	const fat = "../testdata/cubin/kernels.fatbin"
	dir := t.TempDir()
	host := filepath.Join(dir, "host")
	oracle.Run(t, "objcopy", "--add-section", ".nv_fatbin="+fat, crashServer, host)
	o, err := object.Open(host)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	found := 0
	for inner, err := range o.Nested(nil) {
		if err != nil || inner.Image != "" || len(inner.Data) == 0 {
			continue
		}
		cubin, err := object.New("cubin", inner.Data)
		if err != nil {
			continue
		}
		id, ok := cubin.CubinID()
		symbols, _ := cubin.Symbols()
		for _, s := range symbols {
			if !ok || s.Type != elf.STT_FUNC {
				continue
			}
			m := newMade()
			m.location(m.mapping(crashCode, crashCode+crashSize, 0x1000, "host", m.attribute(keyGNU, crashID)), 0x401911)
			m.d.FunctionTable = append(m.d.FunctionTable, &profiles.Function{SystemNameStrindex: m.text(s.Name)})
			m.location(m.mapping(0, 0, 0, fmt.Sprintf("cubin-%016x", id)), 16, m.attribute("profile.frame.type", "cuda-pc"))
			m.d.LocationTable[2].Lines = []*profiles.Line{{FunctionIndex: 1}}
			out, n := name(t, newProfileSymbolizer(t), m.data(t), object.Finder{Sysroot: dir, DebugDirs: []string{dir}})
			if got := chains(t, out)[2]; n.Named != 2 || !strings.Contains(got, " "+s.Name+" ") {
				t.Errorf("%+v, %q, expected %s", n, got, s.Name)
			}
			found++
			break
		}
	}
	if found == 0 {
		t.Error("there is no cubin in it")
	}
}

// TestCodeObjectsInsideOfFilesAreNamed: a code object that ROCm names by its place in a file is taken from the
// file of another mapping, which has a build ID, and from no file that only has the path.
func TestCodeObjectsInsideOfFilesAreNamed(t *testing.T) {
	server, err := os.ReadFile(crashServer)
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("../../examples/gpu-profile/grade.co")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	id, err := hex.DecodeString(crashID)
	if err != nil {
		t.Fatal(err)
	}
	const otherID = "0202020202020202020202020202020202020202"
	other := bytes.Replace(server, id, bytes.Repeat([]byte{2}, len(id)), 1)
	for path, data := range map[string][]byte{"host": append(bytes.Clone(server), code...), otherID + ".debug": other} {
		if err := os.WriteFile(filepath.Join(dir, path), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const loaded = 0x7f5000001600
	for _, c := range []struct {
		offset, size int
		ids          []string
		problem      string
	}{
		{len(server), len(code), []string{crashID}, ""},
		{len(server), len(code), nil, "neither it nor the file that it is in has a build ID in the profile"},
		{len(server), len(code) + 1, []string{crashID}, "are more than its file has"},
		{len(server) + 1, 64, []string{crashID}, "file:///host#offset="},
		{len(server), len(code), []string{crashID, otherID}, "neither it nor"},
	} {
		m := newMade()
		n := m.mapping(loaded, loaded+0x500, 0x600, fmt.Sprintf("file:///host#offset=%d&size=%d", c.offset, c.size))
		m.location(n, loaded+0x38, m.attribute("profile.frame.type", "amdgpu"))
		for _, id := range c.ids {
			m.location(m.mapping(crashCode, crashCode+crashSize, 0x1000, "/host", m.attribute(keyGNU, id)), 0x401911)
		}
		out, counts := name(t, newProfileSymbolizer(t), m.data(t), object.Finder{Sysroot: dir, DebugDirs: []string{dir}})
		if got := chains(t, out)[1]; strings.HasPrefix(got, "grade grade /example/grade.cl:21:8 ") != (c.problem == "") || !strings.Contains(strings.Join(counts.Problems, "\n"), c.problem) {
			t.Errorf("%+v: %s, %+v", c, got, counts)
		}
	}
}

// stores is a store with symbol files.
type stores map[string]string

func (s stores) Fetch(f object.RemoteFile) (string, []object.Attempt) {
	return s[string(f.Kind)+" "+f.Name+" "+f.ID], nil
}

// TestSymbolFilesNameFrames: Breakpad's symbol file of a build names its frames, with the ELF file or without,
// where the mapping tells where the file begins.
func TestSymbolFilesNameFrames(t *testing.T) {
	dir := t.TempDir() // which is removed when the symbolizer is closed
	s := newProfileSymbolizer(t)
	f, err := s.Open(crashServer)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := f.WriteSymbolFile(&text); err != nil {
		t.Fatal(err)
	}
	debugID := strings.Fields(text.String())[3]
	path := filepath.Join(dir, "server.sym")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	finder := object.Finder{Sysroot: t.TempDir(), Symbols: stores{"symbols server " + debugID: path}}
	const moved = 0x7f0000000000
	for _, c := range []struct {
		start, offset, address uint64
		problem                string
	}{
		{moved, 0, moved + 0x1911, ""},
		{moved, 0x1000, moved + 0x911, "there is a symbol file, and no ELF file that tells the address of the mapping"},
		{0x1000, 0x1000, 0x1911, ""},
	} {
		m := newMade()
		m.location(m.mapping(c.start, c.start+0x10000, c.offset, "/bin/server", m.attribute(keyGNU, crashID)), c.address)
		out, n := name(t, s, m.data(t), finder)
		if got := chains(t, out)[1]; strings.HasPrefix(got, "read_body ") != (c.problem == "") || !strings.Contains(strings.Join(n.Problems, ""), c.problem) {
			t.Errorf("%+v: %s, %+v", c, got, n)
		}
	}
}

// TestFramesOfTheKernelAreNamed by a vmlinux: addresses count from _text, as the eBPF profiler has them, or are
// of the kernel where it ran, as perf has them.
func TestFramesOfTheKernelAreNamed(t *testing.T) {
	oracle.Tools(t, "objcopy")
	dir := t.TempDir()
	oracle.Run(t, "objcopy", "--add-symbol", "_text=.text:0,function,global", crashServer, filepath.Join(dir, "vmlinux"))
	o, err := object.Open(crashServer)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	text := o.Section(".text").Address
	const ran = 0xffffffff9a000000
	for _, c := range []struct {
		file                          string
		start, limit, offset, address uint64
		problem                       string
	}{
		{"vmlinux", 0, 0, 0, 0x401911 - text, ""},
		{"[kernel.kallsyms]_text", ran, ran + 1<<24, ran, ran + 0x401911 - text, ""},
		{"[kernel.kallsyms]_stext", ran, ran + 1<<24, ran, ran, "the file has no symbol _stext"},
		{"[kernel.kallsyms]", ran, ran + 1<<24, 0, ran, "the profile does not tell where the kernel ran"},
	} {
		m := newMade()
		m.location(m.mapping(c.start, c.limit, c.offset, c.file, m.attribute(keyGNU, crashID)), c.address, m.attribute("profile.frame.type", "kernel"))
		out, n := name(t, newProfileSymbolizer(t), m.data(t), object.Finder{Sysroot: dir, DebugDirs: []string{dir}})
		if got := chains(t, out)[1]; strings.HasPrefix(got, "read_body ") != (c.problem == "") || !strings.Contains(strings.Join(n.Problems, ""), c.problem) {
			t.Errorf("%+v: %s, %+v", c, got, n)
		}
	}
}

// TestStrippedGoProgramsAreNamed by the table of Go's runtime, and found by the Go build ID alone.
func TestStrippedGoProgramsAreNamed(t *testing.T) {
	oracle.Tools(t, "go")
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\n//go:noinline\nfunc work(n int) int { return n * n }\n\nfunc main() { println(work(3)) }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.With{Dir: dir, Env: []string{"GOFLAGS=", "CGO_ENABLED=0"}}.Run(t, "go", "build", "-o", "whole", source)
	oracle.With{Dir: dir, Env: []string{"GOFLAGS=", "CGO_ENABLED=0"}}.Run(t, "go", "build", "-ldflags=-s -w", "-o", "stripped", source)
	whole, err := object.Open(filepath.Join(dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	stripped, err := object.Open(filepath.Join(dir, "stripped"))
	if err != nil {
		t.Fatal(err)
	}
	defer stripped.Close()
	symbols, err := whole.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	m := newMade()
	n := m.mapping(0, 0, 0, "/elsewhere/stripped", m.attribute(keyGo, goBuildIDOf(stripped)))
	for _, s := range symbols {
		if s.Name == "main.work" {
			m.location(n, s.Address)
		}
	}
	out, counts := name(t, newProfileSymbolizer(t), m.data(t), object.Finder{Sysroot: t.TempDir(), DebugDirs: []string{dir}})
	if got := chains(t, out)[1:]; len(got) != 1 || !strings.HasPrefix(got[0], "main.work main.work "+source+":4:0 ") {
		t.Errorf("%q, %+v", got, counts)
	}
}
