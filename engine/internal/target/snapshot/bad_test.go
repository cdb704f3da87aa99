// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
)

func TestWhatIsNoSnapshotIsSaidToBeWhatItIs(t *testing.T) {
	for _, tt := range []struct{ name, data, want string }{
		{"empty", "", "the file is empty"},
		{"a core", "\x7fELF\x02\x01\x01", `the file begins with "\x7fELF"`},
		{"a minidump", "MDMP\x93\xa7", "a minidump"},
		{"gzip", "\x1f\x8b\x08", "compressed by gzip"},
		{"JSON", `{"format_version":1}`, "JSON by itself: a snapshot is a ZIP file"},
		{"text", "hello", `offset 0x0: the file begins with "hell", expected "PK\x03\x04"`},
		{"one byte", "P", `the file begins with "P"`},
		{"an empty ZIP file", string(archiveOf(t)), "a ZIP file without a member snapshot.json"},
		{"another ZIP file", string(archiveOf(t, file{"a.txt", []byte("a"), true})), "a ZIP file without a member snapshot.json"},
		{"the beginning of one", string(archiveOf(t, documentOf(t, obj{"format_version": 1}))[:40]), "the directory of the ZIP file cannot be read: zip: not a valid zip file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Open(write(t, []byte(tt.data)), options())
			if s != nil || !errors.Is(err, ErrNotSnapshot) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, expected ErrNotSnapshot and %q", err, tt.want)
			}
		})
	}
	if _, err := Open(t.TempDir(), options()); !errors.Is(err, object.ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), options()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// slow leaves megabytes that one goroutine reads out of -short, which is how the
// race detector runs.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds, and ten times as long under the race detector")
	}
}

// longNames are threads with a long name each, no two alike.
func longNames(n, size int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"name":"%0*d"},`, size, i)
	}
	return b.String()
}

// launches are threads that were launched by as many frames each, no two alike.
func launches(n, frames int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"launched_by":{"evidence":"recorded","frames":[%s"%#x"]}},`, strings.Repeat(`"0x1",`, frames-1), i)
	}
	return b.String()
}

func TestDocumentsThatCannotBeReadAreErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", ``, "offset 0x0: the text ends, expected an object"},
		{"an array", `[]`, "offset 0x0: found an array, expected an object"},
		{"cut", `{"format_version":1,"threads":[{`, "offset 0x20, threads[0]: the text ends, expected a member's name"},
		{"more", `{"format_version":1} x`, "offset 0x15: found 'x', expected the end of the text"},
		{"no version", `{"threads":[]}`, "has no format_version, expected 1"},
		{"another version", `{"threads":5,"format_version":2}`, "format_version is 2, expected 1"},
		{"a version that is text", `{"format_version":"1"}`, `format_version is "1", expected 1`},
		{"members twice", `{"format_version":1,"threads":[],"threads":[]}`, "offset 0x2b, threads: the member is given twice"},
		{"threads of another kind", `{"format_version":1,"threads":{}}`, "offset 0x1e, threads: found an object, expected an array"},
		{"a thread of another kind", `{"format_version":1,"threads":[{},3]}`, "offset 0x22, threads[1]: found a number, expected an object"},
		{"a name that is a number", `{"format_version":1,"threads":[{"name":1}]}`, "threads[0].name: found a number, expected a string"},
		{"registers of another kind", `{"format_version":1,"threads":[{"registers":[]}]}`, "threads[0].registers: found an array, expected an object"},
		{"a register that is a number", `{"format_version":1,"threads":[{"arch":"host","registers":{"pc":1}}]}`, "threads[0].registers.pc: found a number, expected a string"},
		{"a signal that is negative", `{"format_version":1,"threads":[{"signal":-1}]}`, "threads[0].signal: -1, expected a whole number from 0 to 2147483647"},
		{"lanes with a fraction", `{"format_version":1,"threads":[{"lanes":1.5}]}`, "threads[0].lanes: 1.5, expected a whole number"},
		{"a group of two", `{"format_version":1,"threads":[{"wave":{"group":[1,2]}}]}`, "threads[0].wave.group: 2 coordinates, expected 3"},
		{"a group of four", `{"format_version":1,"memory":[{"scope":{"group":[1,2,3,4]}}]}`, "memory[0].scope.group: 4 coordinates, expected 3"},
		{"an id that is a list", `{"format_version":1,"threads":[{"id":[]}]}`, "threads[0].id: found an array, expected a string"},
		{"an address that is a number", `{"format_version":1,"memory":[{"address":4096}]}`, "memory[0].address: found a number, expected a string"},
		{"a number with a leading zero", `{"format_version":01}`, "offset 0x13: found a number, expected a comma"},
		{"a control character", "{\"format_version\":1,\"a\":\"\n\"}", "offset 0x19, a: control character 0xa in a string"},
		{"a bad escape", `{"format_version":1,"a":"\x"}`, "a: a string cannot be read"},
		{"deep nesting", `{"format_version":1,"a":` + strings.Repeat("[", 100000), "values nest deeper than 512"},
		{"nesting of one too deep", `{"format_version":1,"a":` + strings.Repeat("[", jsontext.MaxDepth), "values nest deeper than 512"},
		{"nesting that is not", `{"format_version":1,"a":` + strings.Repeat("[", jsontext.MaxDepth-1), "the text ends, expected a value"},
		{"a long string", `{"format_version":1,"threads":[{"id":"` + strings.Repeat("x", jsontext.MaxText+1) + `"}]}`, "a string of 65537 bytes, expected at most 65536"},
		{"many address spaces", `{"format_version":1,"threads":[{"spaces":{` + strings.Repeat(`"x":{},`, maxSpaces) + `"y":{}}}]}`, "more than 64 address spaces"},
		{"a trap's number that is negative", `{"format_version":1,"threads":[{"stop":{"trap_id":-1}}]}`, "threads[0].stop.trap_id: -1, expected a whole number from 0 to 65535"},
		{"a trap's number of many bits", `{"format_version":1,"threads":[{"stop":{"trap_id":65536}}]}`, "threads[0].stop.trap_id: 65536, expected a whole number from 0 to 65535"},
		{"exactness that is a number", `{"format_version":1,"threads":[{"stop":{"pc_exact":1}}]}`, "threads[0].stop.pc_exact: found a number, expected true or false"},
		{"many frames", `{"format_version":1,"threads":[{"launched_by":{"frames":[` + strings.Repeat(`"0x1",`, maxFrames) + `"0x1"]}}]}`, "launched_by.frames[65536]: the list has more than 65536 elements"},
		{"many registers", `{"format_version":1,"threads":[{"arch":"host","registers":{` + strings.Repeat(`"pc":"0x1",`, 1<<16) + `"pc":"0x1"}}]}`, "more than 65536 registers"},
		{"many modules", `{"format_version":1,"modules":[` + strings.Repeat(`{},`, maxModules) + `{}]}`, "modules[16384]: the list has more than 16384 elements"},
		{"many threads", `{"format_version":1,"threads":[` + strings.Repeat(`{ },`, maxThreads) + `{}]}`, "threads[1048576]: the list has more than 1048576 elements"},
		{"threads that compress to nothing", `{"format_version":1,"threads":[` + strings.Repeat(`{},`, 1<<18) + `{}]}`, "what is described takes more than "},
		{"pieces that compress to nothing", `{"format_version":1,"memory":[` + strings.Repeat(`{},`, 1<<18) + `{}]}`, "what is described takes more than "},
		{"names that compress to nothing", `{"format_version":1,"threads":[` + longNames(1500, jsontext.MaxText) + `{}]}`, "what is described takes more than "},
		{"frames that compress to nothing", `{"format_version":1,"threads":[` + launches(1500, maxFrames/8) + `{}]}`, "what is described takes more than "},
		{"many pieces", `{"format_version":1,"memory":[` + strings.Repeat(`{},`, maxPieces) + `{}]}`, "memory[1048576]: the list has more than 1048576 elements"},
		{"many segments", `{"format_version":1,"modules":[{"segments":[` + strings.Repeat(`{},`, maxSegments) + `{}]}]}`, "modules[0].segments[262144]: the list has more than 262144 elements"},
		{"many segments of several", `{"format_version":1,"modules":[` + strings.Repeat(`{"segments":[`+strings.Repeat(`{},`, maxSegments/4)+`{}]},`, 4) + `{}]}`, "the modules have more than 262144 segments"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if len(tt.text) > 2<<20 {
				slow(t)
			}
			// What the whole file has bytes for is bounded by number.
			isStored := strings.Contains(tt.want, "1048576")
			s, err := Open(write(t, archiveOf(t, file{documentName, []byte(tt.text), isStored})), options())
			if err == nil {
				s.Close()
			}
			if err == nil || errors.Is(err, ErrNotSnapshot) || !strings.Contains(err.Error(), ": snapshot.json: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v\nexpected %q", err, tt.want)
			}
		})
	}
}

func TestWhatIsWrongWithOneThingCostsThatAlone(t *testing.T) {
	vector := hex.EncodeToString(fill(0, 64))
	thread := func(members obj) obj {
		t := obj{"id": "1", "arch": "host", "registers": obj{"pc": "0x1"}}
		for name, value := range members {
			t[name] = value
		}
		return obj{"threads": []any{t}}
	}
	registers := func(text string) obj {
		return thread(obj{"registers": rawJSON(`{"pc":"0x1",` + text + `}`)})
	}
	module := func(members obj) obj {
		m := obj{"path": "/none/app", "arch": "host", "file": "app", "segments": []any{}}
		for name, value := range members {
			m[name] = value
		}
		return obj{"modules": []any{m}}
	}
	memory := func(members obj) obj {
		m := obj{"file": "bytes", "address": "0x10"}
		for name, value := range members {
			m[name] = value
		}
		return obj{"memory": []any{m}, "threads": []any{obj{"id": "w", "arch": "gpu", "registers": obj{"pc": "0x0"}}}}
	}
	for _, tt := range []struct {
		name     string
		document obj
		want     []string // problems of the snapshot, and of module 0
	}{
		{"an architecture that is unknown", thread(obj{"arch": "vax"}), []string{`thread "1": its registers cannot be read: there is no architecture of that name`}},
		{"an architecture without description", thread(obj{"arch": "nil"}), []string{`thread "1": its registers cannot be read: architecture "nil" has no description`}},
		{"no architecture", thread(obj{"arch": nil}), []string{`thread "1": its registers cannot be read: it has no arch`}},
		{"no id", thread(obj{"id": ""}), []string{`threads[0]: has no id`}},
		{"no registers", thread(obj{"registers": nil}), nil},
		{"no PC", thread(obj{"registers": obj{"sp": "0x1"}}), []string{`thread "1": its registers have no program counter (pc)`}},
		{"lanes of 10,000", thread(obj{"lanes": 10000}), []string{`thread "1": lanes is 10000, expected at most 4096: it is ignored`}},
		{"a register that is unknown", registers(`"r99":"0x1"`), []string{`thread "1": register "r99" is not one of architecture host`}},
		{"an absurd register", registers(`"x4294967296":"0x1"`), []string{`thread "1": register "x4294967296" is not one of architecture host`}},
		{"a long name", registers(`"` + strings.Repeat("x", 1000) + `":"0x1"`), []string{`thread "1": register "` + strings.Repeat("x", 200) + `..." is not one of architecture host`}},
		{"no hexadecimal number", registers(`"sp":"12"`), []string{`thread "1": register sp is "12", expected 0x and hexadecimal digits`}},
		{"nothing after 0x", registers(`"sp":"0x"`), []string{`thread "1": register sp is "0x", expected 0x and hexadecimal digits`}},
		{"a sign", registers(`"sp":"0x-1"`), []string{`thread "1": register sp is "0x-1", expected 0x and hexadecimal digits`}},
		{"too many bits", registers(`"flags":"0x10"`), []string{`thread "1": register flags is 0x10, expected at most 4 bits`}},
		{"far too many", registers(`"sp":"0x1` + strings.Repeat("0", 300) + `"`), []string{`thread "1": register sp is 0x1` + strings.Repeat("0", 197) + `..., expected at most 64 bits`}},
		{"a vector as a number", registers(`"x0":"0x00"`), []string{`thread "1": register x0 has 4 hexadecimal digits, expected 128`}},
		{"a vector of other digits", registers(`"x0":"` + vector[2:] + `0x"`), []string{`thread "1": register x0 is not hexadecimal: encoding/hex: invalid byte: U+0078 'x'`}},
		{"a vector that is too short", registers(`"x0":"0011"`), []string{`thread "1": register x0 has 4 hexadecimal digits, expected 128`}},
		{"a vector that is too long", registers(`"x0":"` + vector + `00"`), []string{`thread "1": register x0 has 130 hexadecimal digits, expected 128`}},
		{"an odd vector", registers(`"x0":"` + vector[1:] + `"`), []string{`thread "1": register x0 has 127 hexadecimal digits, expected 128`}},
		{"a register twice", registers(`"sp":"0x1","SP":"0x1"`), []string{`thread "1": register sp is given 2 times, with one value`}},
		{"a register twice and differently", registers(`"sp":"0x1","sp":"0x2"`), []string{`thread "1": register sp is given 2 times, with two values: it is left out`}},
		{"a PC twice", thread(obj{"registers": rawJSON(`{"pc":"0x1","PC":"0x2"}`)}), []string{
			`thread "1": register pc is given 2 times, with two values: it is left out`, `thread "1": its registers have no program counter (pc)`}},
		{"a space that is unknown", thread(obj{"spaces": obj{"moon": obj{"base": "0x1"}}}), []string{`thread "1": spaces.moon: architecture host has no such address space`}},
		{"a base of the default space", thread(obj{"spaces": obj{"global": obj{"base": "0x1"}}}), []string{`thread "1": spaces.global: the default address space has no base`}},
		{"a base that is none", thread(obj{"arch": "gpu", "spaces": obj{"local": obj{"base": "x"}}}), []string{`thread "1": spaces.local.base is "x", expected 0x and hexadecimal digits`}},
		{"no base", thread(obj{"arch": "gpu", "spaces": obj{"local": obj{}}}), []string{`thread "1": spaces.local.base is missing`}},
		{"two bases", thread(obj{"arch": "gpu", "spaces": rawJSON(`{"local":{"base":"0x1"},"LOCAL":{"base":"0x2"}}`)}), []string{`thread "1": address space 3 has several bases: all are left out`}},
		{"a reason of another kind", thread(obj{"stop": obj{"reason": "boredom", "address": "x"}}), []string{
			`thread "1": stop.reason is "boredom", expected breakpoint, watchpoint, single-step, trap, memory-fault, address-error, ` +
				`illegal-instruction, math-error, ecc-error, fatal-halt, assert, stack-overflow or exception: why it stopped is left out`}},
		{"an address that is none", thread(obj{"stop": obj{"address": "12", "reason": "memory-fault"}}), []string{
			`thread "1": stop.address is "12", expected 0x and hexadecimal digits`}},
		{"an address of what has none", thread(obj{"stop": obj{"reason": "breakpoint", "address": "0x1"}}), []string{
			`thread "1": stop.address: the reason breakpoint has none: it is left out`}},
		{"a trap's number of what has none", thread(obj{"stop": obj{"reason": "memory-fault", "trap_id": 2}}), []string{
			`thread "1": stop.trap_id: the reason memory-fault has none: it is left out`}},
		{"evidence of another kind", thread(obj{"launched_by": obj{"thread": "2", "evidence": "rumour"}}), []string{
			`thread "1": launched_by.evidence is "rumour", expected recorded, waiting or queue: who launched it is left out`}},
		{"frames that are no numbers", thread(obj{"launched_by": obj{"evidence": "queue", "frames": []any{"0x1", "main"}}}), []string{
			`thread "1": launched_by.frames[1] is "main", expected 0x and hexadecimal digits: the frames are left out`}},
		{"two threads of one id", obj{"threads": []any{obj{"id": "1", "arch": "host", "registers": obj{"pc": "0x1"}}, obj{"id": "1", "arch": "host", "registers": obj{"pc": "0x1"}}}},
			[]string{`thread "1": there are several with this id: none has memory of its own`}},

		{"a module of no member", module(obj{"file": "nothing", "path": nil}), []string{`the archive has no member "nothing"`}},
		{"a module of nothing", module(obj{"file": nil, "path": nil}), []string{"neither file, path nor build_id say what its code object is"}},
		{"a module that is no ELF file", module(obj{"file": "bytes", "path": nil}), []string{`member "bytes": PATH:bytes: not an ELF file`}},
		{"a module of another build ID", module(obj{"build_id": "01", "path": nil}), []string{`PATH:app: build ID is abcd, expected 01; no file with build ID 01`}},
		{"a build ID that is none", module(obj{"build_id": "xyz"}), []string{`build_id is "xyz", expected at most 512 pairs of hexadecimal digits`}},
		{"a long build ID", module(obj{"build_id": strings.Repeat("00", 513)}), []string{`build_id is "` + strings.Repeat("0", 200) + `...", expected at most 512 pairs of hexadecimal digits`}},
		{"a module of another machine", module(obj{"arch": "gpu", "path": nil}), []string{`PATH:app: ELF machine 62 (x86_64), 64-bit, little-endian is not one of architecture gpu`}},
		{"a module of no architecture", module(obj{"arch": nil}), []string{`has no arch`}},
		{"a path that climbs out", module(obj{"file": "../../../../etc/passwd", "path": nil}), []string{`the archive has no member "../../../../etc/passwd"`}},
		{"a source module that is not there", module(obj{"source_module": "none"}), []string{`source_module: the archive has no member "none"`}},
		{"a segment without start", module(obj{"segments": []any{obj{"address": "0x0", "size": "0x1"}}}), []string{`segments[0].start is missing: the segment is left out`}},
		{"a segment of no size", module(obj{"segments": []any{obj{"address": "0x0", "size": "0x0", "start": "0x1"}}}), nil},
		{"a segment with a large number", module(obj{"segments": []any{obj{"address": "0x10000000000000000", "size": "0x1", "start": "0x1"}}}),
			[]string{`segments[0].address is 0x10000000000000000, expected at most 64 bits: the segment is left out`}},
		{"a segment past the end", module(obj{"segments": []any{obj{"address": "0x0", "size": "0x20", "start": "0xfffffffffffffff0"}}}),
			[]string{`segments[0] of 0x20 bytes at 0xfffffffffffffff0 reaches past the last address: it is left out`}},
		{"segments that overlap", module(obj{"segments": []any{obj{"address": "0x0", "size": "0x20", "start": "0x10"}, obj{"address": "0x0", "size": "0x10", "start": "0x2f"}}}),
			[]string{`module "/none/app": its segment of 0x10 bytes at 0x2f overlaps one that starts before it: it is left out`}},

		{"memory of no member", memory(obj{"file": "none"}), []string{`memory[0]: the archive has no member "none": it is left out`}},
		{"memory of no file", memory(obj{"file": nil}), []string{`memory[0]: the archive has no member "": it is left out`}},
		{"memory without address", memory(obj{"address": nil}), []string{`memory[0]: address is missing: it is left out`}},
		{"memory past the end", memory(obj{"address": "0xffffffffffffffff"}), []string{`memory[0]: 0x20 bytes at address 0xffffffffffffffff reach past the last address: it is left out`}},
		{"memory of a space that is unknown", memory(obj{"space": "moon", "scope": obj{"wave": "w"}}), []string{`memory[0]: no architecture of the snapshot has an address space "moon": it is left out`}},
		{"default memory with a scope", memory(obj{"scope": obj{"wave": "w"}}), []string{`memory[0]: the default address space has one instance, and no scope: it is left out`}},
		{"a wave's memory of no wave", memory(obj{"space": "private_wave"}), []string{`memory[0]: address space private_wave: its scope names no wave: it is left out`}},
		{"a wave's memory of a group", memory(obj{"space": "private_wave", "scope": obj{"group": []any{0, 0, 0}}}), []string{`memory[0]: address space private_wave: its scope names no wave: it is left out`}},
		{"a group's memory of an agent", memory(obj{"space": "local", "scope": obj{"agent": "a"}}), []string{`memory[0]: address space local: its scope names neither group nor wave: it is left out`}},
		{"an agent's memory of none", memory(obj{"space": "agent"}), []string{`memory[0]: address space agent: its scope names no agent: it is left out`}},
		{"a lane twice", thread(obj{"lanes": 4, "lead": 1, "lane_states": []obj{{"lane": 1, "registers": obj{}}, {"lane": 1, "registers": obj{}}}}),
			[]string{`thread "1": lane_states[1]: lane 1, expected the lanes below 4 in their order: the lanes' registers are left out`}},
		{"a lead that is no lane of them", thread(obj{"lanes": 4, "lead": 2, "lane_states": []obj{{"lane": 1, "registers": obj{}}}}),
			[]string{`thread "1": lead is 2, expected a lane of lane_states: the lanes' registers are left out`}},
		{"a caller that is no number", thread(obj{"callers": []string{"0x1", "main"}}),
			[]string{`thread "1": callers[1] is "main", expected 0x and hexadecimal digits: the callers are left out`}},
		{"a lane's memory", memory(obj{"space": "private_lane", "scope": obj{"wave": "w"}}), []string{`memory[0]: address space private_lane: its scope names no lane of a wave, and memory of lanes that have it in common is given in the address space that they share: it is left out`}},
		{"encrypted memory", memory(obj{"file": "secret"}), []string{`memory[0]: member "secret": is encrypted: it is left out`}},
		{"memory compressed by another method", memory(obj{"file": "odd"}), []string{`memory[0]: member "odd": compression method 99, expected 0 (stored) or 8 (deflated): it is left out`}},
		{"members of one name", memory(obj{"file": "twice"}), []string{`memory[0]: the archive has several members "twice": it is left out`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.document["format_version"] = 1
			data := archiveOf(t, documentOf(t, tt.document), file{"app", elfFile(62, []byte{0xab, 0xcd}), false}, file{"bytes", fill(0, 32), false},
				file{"secret", nil, true}, file{"odd", nil, true}, file{"twice", nil, true}, file{"twice", nil, true})
			directory(data, "secret", func(h []byte) { h[8] |= 1 })
			directory(data, "odd", func(h []byte) { h[10] = 99 })
			o := options()
			o.Finder = object.Finder{Sysroot: t.TempDir()}
			s, err := Open(write(t, data), o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			got := problems(s)
			if len(s.Modules()) > 0 {
				p := strings.ReplaceAll(s.Modules()[0].Problem, s.path, "PATH")
				if strings.Contains(p, "/none/app: no file") {
					t.Errorf("a file was looked for: %s", p)
				}
				if p != "" {
					got = append(got, p)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
			for _, th := range s.Threads() {
				if err := th.Registers.Validate(); err != nil {
					t.Error(err)
				}
				// Either its registers were read, or it says why not.
				if (len(th.Registers.Numbers) == 0) != (th.Problem != "") && len(got) == 0 {
					t.Errorf("registers %v, problem %q", th.Registers.Numbers, th.Problem)
				}
			}
		})
	}
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// directory changes the header of a member in the directory of an archive.
func directory(data []byte, name string, change func(h []byte)) {
	for at := 0; ; {
		i := bytes.Index(data[at:], []byte("PK\x01\x02"))
		if i < 0 {
			return
		}
		h := data[at+i:]
		if n := int(binary.LittleEndian.Uint16(h[28:])); string(h[46:46+n]) == name {
			change(h)
		}
		at += i + 4
	}
}

func TestMembersThatLieAreErrorsWhenTheyAreRead(t *testing.T) {
	for _, tt := range []struct {
		name   string
		store  bool
		change func(h []byte)
		want   string
	}{
		{"another checksum", false, func(h []byte) { h[16] ^= 1 }, "CRC-32 is "},
		{"another checksum of a stored one", true, func(h []byte) { h[16] ^= 1 }, "CRC-32 is "},
		{"fewer bytes than there are", false, func(h []byte) { binary.LittleEndian.PutUint32(h[24:], 100) }, "decompressed to more than the 100 bytes that were expected"},
		{"more bytes than there are", false, func(h []byte) { binary.LittleEndian.PutUint32(h[24:], 5000) }, "decompressed to 4096 bytes, expected 5000"},
		{"a header that is not there", false, func(h []byte) { binary.LittleEndian.PutUint32(h[42:], 7) }, "zip: not a valid zip file"},
		{"bytes past the end", true, func(h []byte) { binary.LittleEndian.PutUint32(h[42:], 0) }, "CRC-32 is "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := archiveOf(t, documentOf(t, obj{"format_version": 1, "memory": []any{obj{"file": "m", "address": "0x1000"}}}),
				file{"m", bytes.Repeat([]byte("unwindd."), 512), tt.store})
			directory(data, "m", tt.change)
			s := openBytes(t, data)
			if p := s.Info().Problems; len(p) > 0 {
				t.Errorf("problems before it is read: %v", p)
			}
			for range 2 {
				n, err := s.ReadMemory(0, 0x1000, make([]byte, 8))
				if n != 0 || err == nil || errors.Is(err, target.ErrNoMemory) || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%d bytes, %v; expected %q", n, err, tt.want)
				}
			}
		})
	}
}

func TestBombsAreRefused(t *testing.T) {
	bomb := func(name string, size int) file { return file{name, make([]byte, size), false} }
	t.Run("beyond what the file makes believable", func(t *testing.T) {
		slow(t)
		const each = 24 << 20
		var files []file
		var pieces []any
		for i := range 4 {
			name := fmt.Sprint("memory/", i)
			files = append(files, bomb(name, each))
			pieces = append(pieces, obj{"file": name, "address": fmt.Sprintf("0x%x", i*each)})
		}
		s := openDocument(t, obj{"format_version": 1, "memory": pieces}, files...)
		refused := 0
		for i := range files {
			if _, err := s.ReadMemory(0, uint64(i)*each, make([]byte, 1)); errors.Is(err, object.ErrTooLarge) {
				refused++
			} else if err != nil {
				t.Error(err)
			}
		}
		if refused != 1 {
			t.Errorf("%d members of 24 MiB are refused, expected the fourth", refused)
		}
	})
	for _, tt := range []struct {
		name, want string
		change     func(h []byte)
	}{
		{"more than a member may have", "has 1073741825 bytes, expected at most 1073741824", func(h []byte) { binary.LittleEndian.PutUint32(h[24:], 1<<30+1) }},
		{"more than DEFLATE can hold", "compressed ones cannot hold", func(h []byte) { binary.LittleEndian.PutUint32(h[24:], 1<<30) }},
		{"more than the file has", "bytes in a file of", func(h []byte) { binary.LittleEndian.PutUint32(h[20:], 1<<30) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := archiveOf(t, documentOf(t, obj{"format_version": 1, "memory": []any{obj{"file": "m", "address": "0x0"}}}),
				file{"m", bytes.Repeat([]byte{1}, 4096), false})
			directory(data, "m", tt.change)
			s := openBytes(t, data)
			if p := problems(s); len(p) != 1 || !strings.Contains(p[0], tt.want) {
				t.Errorf("problems %q, expected %q", p, tt.want)
			}
		})
	}
	t.Run("a document that is too large", func(t *testing.T) {
		data := archiveOf(t, file{documentName, bytes.Repeat([]byte(" "), 1<<20), false})
		directory(data, documentName, func(h []byte) { binary.LittleEndian.PutUint32(h[24:], 1<<30+1) })
		directory(data, documentName, func(h []byte) { binary.LittleEndian.PutUint32(h[20:], uint32(len(data))) })
		_, err := Open(write(t, data), options())
		if err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a directory that is too large", func(t *testing.T) {
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		for i := range 1200 {
			if _, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(i), Comment: strings.Repeat("x", 60000)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := Open(write(t, buf.Bytes()), options())
		if err == nil || !strings.Contains(err.Error(), "its directory has more than 67108864 bytes") {
			t.Errorf("%v", err)
		}
	})
}

// A million waves are within the bounds of a snapshot. What a quarter of them
// costs is measured.
func TestManyWavesAreReadInBoundedTimeAndMemory(t *testing.T) {
	slow(t)
	const count = 1 << 18
	var text bytes.Buffer
	text.WriteString(`{"format_version":1,"threads":[`)
	for i := range count {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"id":"w%d","arch":"gpu","lanes":64,"registers":{"pc":"0x1000","exec":"0xff"},"wave":{"agent":"a","dispatch":"d","group":[%d,0,0]}}`, i, i/4)
	}
	text.WriteString(`],"memory":[`)
	for i := range count {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"file":"m","space":"private_wave","address":"0x%x","scope":{"wave":"w%d"}}`, i%7, i)
	}
	text.WriteString(`]}`)
	path := write(t, archiveOf(t, file{documentName, text.Bytes(), false}, file{"m", fill(0, 64), false}))
	size := text.Len()
	text = bytes.Buffer{}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	s, err := Open(path, options())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	took := time.Since(start)
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := after.HeapAlloc - before.HeapAlloc
	t.Logf("%d MiB of JSON: %v, %d MiB", size>>20, took.Round(time.Millisecond), used>>20)
	if took > time.Minute || used > 6*uint64(size) {
		t.Errorf("%v and %d bytes for %d bytes of JSON", took, used, size)
	}
	for _, i := range []int{0, 12345, count - 1} {
		check(t, "a wave's memory", fill(1, 4), func(buf []byte) (int, error) {
			return s.ReadScoped(6, s.Threads()[i], uint64(i%7)+1, buf)
		})
	}
}

// Thousands of modules may name one member with tens of thousands of sections:
// it is opened once.
func TestManyModulesOfOneCodeObjectCostOne(t *testing.T) {
	const sections = 60000
	var elf bytes.Buffer
	elf.WriteString("\x7fELF\x02\x01\x01")
	elf.Write(make([]byte, 9))
	for _, v := range []any{uint16(3), uint16(62), uint32(1), uint64(0), uint64(0), uint64(64), uint32(0),
		uint16(64), uint16(56), uint16(0), uint16(64), uint16(sections), uint16(0)} {
		binary.Write(&elf, binary.LittleEndian, v)
	}
	elf.Write(make([]byte, 64))
	one := make([]byte, 64)
	one[4], one[8] = 1, 2 // SHT_PROGBITS, SHF_ALLOC
	elf.Write(bytes.Repeat(one, sections-1))
	var modules []any
	for i := range maxModules {
		modules = append(modules, obj{"arch": "host", "file": "e", "path": "/none/e",
			"segments": []any{obj{"address": "0x0", "size": "0x1000", "start": fmt.Sprintf("0x%x", (i+1)<<16)}}})
	}
	path := write(t, archiveOf(t, documentOf(t, obj{"format_version": 1, "modules": modules}), file{"e", elf.Bytes(), false}))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	s, err := Open(path, options())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := after.HeapAlloc - before.HeapAlloc
	t.Logf("%v, %d MiB", time.Since(start).Round(time.Millisecond), used>>20)
	if used > 256<<20 || time.Since(start) > time.Minute {
		t.Errorf("%v and %d bytes", time.Since(start), used)
	}
	for _, m := range s.Modules() {
		if m.Object == nil || m.Object != s.Modules()[0].Object {
			t.Fatalf("module %d: object %v, problem %q", m.ID, m.Object, m.Problem)
		}
	}
}

// A module's path is that of a file under the folder where files are looked for,
// whatever it says.
func TestPathsOfModulesStayBelowTheSysroot(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "outside"), elfFile(62, []byte{1}), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "outside"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	var modules []any
	for _, path := range []string{"/../outside", "../outside", "/a/../../outside", "/link", filepath.Join(dir, "outside"), "outside\x00"} {
		modules = append(modules, obj{"arch": "host", "path": path, "build_id": "01"}, obj{"arch": "host", "path": path})
	}
	o := options()
	o.Finder = object.Finder{Sysroot: root}
	s, err := Open(write(t, archiveOf(t, documentOf(t, obj{"format_version": 1, "modules": modules}))), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, m := range s.Modules() {
		if m.Object != nil {
			t.Errorf("%q is read from %s", m.Path, m.File)
		}
	}
}
