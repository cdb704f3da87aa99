// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// libraryFolder has the libraries of Debian.
const libraryFolder = "/usr/lib/x86_64-linux-gnu"

// library is a file of code with functions.
type library struct {
	path, buildID string
	code          elf.ProgHeader // the segment with code
	functions     []elf.Symbol
}

// findLibraries returns the largest libraries that have a build ID and functions.
func findLibraries(most int) (list []*library, err error) {
	type file struct {
		path string
		size int64
	}
	var files []file
	err = filepath.WalkDir(libraryFolder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || !strings.Contains(e.Name(), ".so") {
			return nil //nolint:nilerr // a folder may be somebody's own
		}
		if info, err := e.Info(); err == nil {
			files = append(files, file{path, info.Size()})
		}
		return nil
	})
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(cmp.Compare(b.size, a.size), cmp.Compare(a.path, b.path)) })
	for _, f := range files {
		if l := readLibrary(f.path); l != nil && len(list) < most {
			list = append(list, l)
		}
	}
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s has no libraries", libraryFolder)
	}
	return list, err
}

// readLibrary returns a library; nil: the file is none.
func readLibrary(path string) *library {
	id, err := cost.BuildID(path)
	if err != nil || len(id) == 0 {
		return nil
	}
	f, err := elf.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	l := &library{path: path, buildID: hex.EncodeToString(id)}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			l.code = p.ProgHeader
		}
	}
	symbols, _ := f.DynamicSymbols() // there may be none
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 && s.Value >= l.code.Vaddr && s.Value+s.Size <= l.code.Vaddr+l.code.Memsz {
			l.functions = append(l.functions, s)
		}
	}
	const few = 100
	if f.Machine != elf.EM_X86_64 || len(l.functions) < few {
		return nil
	}
	return l
}

// maker makes profiles.
type maker struct {
	random    *rand.Rand
	libraries []*library
}

// profile makes a request with one profile of as many frames, each in a stack of ten.
func (m *maker) profile(frames int) (id string, request []byte, err error) {
	b := make([]byte, 16)
	for i := range b {
		b[i] = byte(m.random.Uint32())
	}
	d := &profiles.ProfilesDictionary{
		MappingTable: []*profiles.Mapping{{}}, LocationTable: []*profiles.Location{{}}, FunctionTable: []*profiles.Function{{}}, LinkTable: []*profiles.Link{{}},
		AttributeTable: []*profiles.KeyValueAndUnit{{}}, StackTable: []*profiles.Stack{{}}, StringTable: []string{"", "samples", "count", "process.executable.build_id.gnu"},
	}
	const base, apart, page = 0x7f00_0000_0000, 1 << 32, 4096
	for i, l := range m.libraries {
		d.StringTable = append(d.StringTable, l.path)
		d.AttributeTable = append(d.AttributeTable, &profiles.KeyValueAndUnit{
			KeyStrindex: 3, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: l.buildID}},
		})
		start := base + uint64(i)*apart + l.code.Vaddr&^(page-1)
		d.MappingTable = append(d.MappingTable, &profiles.Mapping{
			MemoryStart: start, MemoryLimit: start + (l.code.Vaddr%page+l.code.Memsz+page-1)&^(page-1), FileOffset: l.code.Off &^ (page - 1),
			FilenameStrindex: int32(3 + i + 1), AttributeIndices: []int32{int32(i + 1)},
		})
	}
	p := &profiles.Profile{SampleType: &profiles.ValueType{TypeStrindex: 1, UnitStrindex: 2}, ProfileId: b, TimeUnixNano: 1, DurationNano: 5e9}
	for range frames / 10 {
		s := &profiles.Stack{}
		for range 10 {
			i := m.random.IntN(len(m.libraries))
			l := m.libraries[i]
			f := l.functions[m.random.IntN(len(l.functions))]
			d.LocationTable = append(d.LocationTable, &profiles.Location{
				MappingIndex: int32(i + 1), Address: base + uint64(i)*apart + f.Value + m.random.Uint64N(f.Size),
			})
			s.LocationIndices = append(s.LocationIndices, int32(len(d.LocationTable)-1))
		}
		p.Samples = append(p.Samples, &profiles.Sample{StackIndex: int32(len(d.StackTable)), Values: []int64{1}})
		d.StackTable = append(d.StackTable, s)
	}
	request, err = proto.Marshal(&profiles.ProfilesData{Dictionary: d, ResourceProfiles: []*profiles.ResourceProfiles{{
		Resource: &resource.Resource{}, ScopeProfiles: []*profiles.ScopeProfiles{{Scope: &common.InstrumentationScope{}, Profiles: []*profiles.Profile{p}}},
	}}})
	return string(b), request, err
}

// named counts the frames of a profile, and those that have a name.
func named(d *profiles.ProfilesData) (all, named int) {
	t := d.GetDictionary()
	for i, l := range t.GetLocationTable() {
		if i == 0 {
			continue
		}
		all++
		isNamed := len(l.GetLines()) > 0
		for _, line := range l.GetLines() {
			isNamed = isNamed && t.StringTable[t.FunctionTable[line.GetFunctionIndex()].GetNameStrindex()] != ""
		}
		if isNamed {
			named++
		}
	}
	return all, named
}

// requestsOf reads a file of requests, each with its size in four bytes before it, or of a single one.
func requestsOf(path string) (list [][]byte, err error) {
	whole, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for b := whole; len(b) > 0; {
		if len(b) < 4 || uint64(binary.BigEndian.Uint32(b)) > uint64(len(b)-4) {
			return [][]byte{whole}, nil
		}
		n := 4 + int(binary.BigEndian.Uint32(b))
		list = append(list, b[4:n])
		b = b[n:]
	}
	return list, nil
}
