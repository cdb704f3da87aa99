// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// contentsOf are the contents of a snapshot that is open, with all of its memory.
func contentsOf(s *Snapshot) *Contents {
	c := &Contents{Threads: s.Threads()}
	for _, m := range s.Modules() {
		c.Modules = append(c.Modules, Module{Module: m, Keep: true})
	}
	for i := range s.memory.pieces {
		p := &s.memory.pieces[i]
		if p.space == "" {
			data, _ := p.member.bytes()
			c.Memory = append(c.Memory, Memory{Address: p.start, Data: data[p.skip:][:p.size]})
		}
	}
	for _, th := range s.Threads() {
		for space := locexpr.AddressSpace(1); space < 8; space++ {
			for at := uint64(0); at < 0x400; at++ {
				var b [1]byte
				if n, _ := s.ReadScoped(space, th, at, b[:]); n == 0 {
					continue
				}
				if n := len(c.Memory); n > 0 && c.Memory[n-1].Space == space && c.Memory[n-1].Thread == th &&
					c.Memory[n-1].Address+uint64(len(c.Memory[n-1].Data)) == at {
					c.Memory[n-1].Data = append(c.Memory[n-1].Data, b[0])
					continue
				}
				c.Memory = append(c.Memory, Memory{Space: space, Thread: th, Address: at, Data: []byte{b[0]}})
			}
		}
	}
	return c
}

func writeBytes(t testing.TB, c *Contents) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, c, options()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	s := openFull(t)
	data := writeBytes(t, contentsOf(s))
	if !bytes.Equal(data, writeBytes(t, contentsOf(openFull(t)))) {
		t.Error("equal contents give other bytes")
	}
	again := openBytes(t, data)
	if p := problems(again); len(p) > 0 {
		t.Errorf("problems: %q", p)
	}
	// A lane count that only registers tell is written.
	if d := cmp.Diff(s.Threads(), again.Threads()); d != "" {
		t.Errorf("threads (-first +second):\n%s", d)
	}
	if len(again.Modules()) != len(s.Modules()) || again.Info().Signal != s.Info().Signal {
		t.Errorf("%d modules, signal %d", len(again.Modules()), again.Info().Signal)
	}
	for i, m := range again.Modules() {
		was := s.Modules()[i]
		if m.Path != was.Path || !bytes.Equal(m.BuildID, was.BuildID) || !slices.Equal(m.Segments, was.Segments) ||
			m.Problem != was.Problem || (m.Object == nil) != (was.Object == nil) || (m.SourceModule == nil) != (was.SourceModule == nil) {
			t.Errorf("module %+v, was %+v", m, was)
		}
	}
	same := func(what string, read func(s *Snapshot, buf []byte) (int, error)) {
		a, b := make([]byte, 96), make([]byte, 96)
		n, errA := read(s, a)
		m, errB := read(again, b)
		if n != m || !bytes.Equal(a, b) || (errA == nil) != (errB == nil) {
			t.Errorf("%s: %d bytes %x, %v; were %d bytes %x, %v", what, m, b, errB, n, a, errA)
		}
	}
	for at := uint64(0x400000); at < 0x404000; at += 32 {
		same(fmt.Sprintf("%#x", at), func(s *Snapshot, buf []byte) (int, error) { return s.ReadMemory(0, at, buf) })
	}
	for i := range s.Threads() {
		for space := range locexpr.AddressSpace(8) {
			for at := uint64(0); at < 0x200; at += 16 {
				same(fmt.Sprintf("thread %d, space %d, %#x", i, space, at), func(s *Snapshot, buf []byte) (int, error) {
					return s.ReadScoped(space, s.Threads()[i], at, buf)
				})
			}
		}
	}
}

func TestWhatIsWrittenIsAsTheSchemaSays(t *testing.T) {
	data := writeBytes(t, contentsOf(openFull(t)))
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := z.Open(documentName)
	if err != nil {
		t.Fatal(err)
	}
	var document any
	if err := json.NewDecoder(f).Decode(&document); err != nil {
		t.Fatal(err)
	}
	s := readSchema(t)
	if wrong := s.check("", document, s.root); len(wrong) > 0 {
		t.Errorf("%q", wrong)
	}
	for _, f := range z.File {
		if strings.Contains(f.Name, "..") || strings.HasPrefix(f.Name, "/") || f.Flags&8 != 0 {
			t.Errorf("member %q, flags %#x", f.Name, f.Flags)
		}
	}
}

func TestMemoryThatCodeObjectsHaveIsLeftOut(t *testing.T) {
	s := openFull(t)
	var app *target.Module
	for _, m := range s.Modules() {
		if m.Object != nil && m.Object.Machine() == 62 {
			app = m
		}
	}
	code := fill(0, codeSize)
	patched := bytes.Clone(code)
	patched[40] ^= 0xff
	for _, tt := range []struct {
		name    string
		keep    bool
		buildID []byte
		memory  []byte
		address uint64
		want    []string
	}{
		{"kept", true, nil, code, 0x401000, nil},
		{"told by its build ID", false, app.BuildID, code, 0x401000, nil},
		{"not told from others", false, nil, code, 0x401000, []string{"0x401000+64"}},
		{"with another build ID", false, []byte{9}, code, 0x401000, []string{"0x401000+64"}},
		{"before and after it", true, nil, slices.Concat(fill(9, 8), code, fill(7, 8)), 0x400ff8, []string{"0x400ff8+8", "0x401040+8"}},
		{"patched", true, nil, patched, 0x401000, []string{"0x401000+41"}},
		{"its data", true, nil, fill(0x40, 64), 0x402000, []string{"0x402000+64"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := *app
			m.BuildID = tt.buildID
			c := &Contents{Modules: []Module{{Module: &m, Keep: tt.keep}}, Memory: []Memory{{Address: tt.address, Data: tt.memory}}}
			var have []string
			again := openBytes(t, writeBytes(t, c))
			for _, p := range again.memory.pieces {
				have = append(have, fmt.Sprintf("%#x+%d", p.start, p.size))
			}
			if d := cmp.Diff(tt.want, have); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if tt.keep || tt.want != nil {
				check(t, tt.name, tt.memory, func(buf []byte) (int, error) { return again.ReadMemory(0, tt.address, buf) })
			}
		})
	}
}

func TestEqualMembersAreStoredOnce(t *testing.T) {
	c := &Contents{}
	for i := range 1000 {
		th := &trace.Thread{Handle: uint64(i), ID: fmt.Sprint("w", i), Arch: "gpu", Lanes: 64}
		c.Threads = append(c.Threads, th)
		c.Memory = append(c.Memory, Memory{Space: 6, Thread: th, Address: 0x40, Data: fill(1, 64)})
	}
	s := openBytes(t, writeBytes(t, c))
	if n := len(s.archive.members); n != 2 {
		t.Errorf("%d members, expected 2", n)
	}
	check(t, "the last wave's", fill(1, 64), func(buf []byte) (int, error) { return s.ReadScoped(6, s.Threads()[999], 0x40, buf) })
}

// What compresses too well is not taken for a bomb.
func TestEmptyMemoryIsReadAgain(t *testing.T) {
	c := &Contents{}
	const each = 24 << 20
	for i := range uint64(6) {
		data := make([]byte, each)
		data[0] = byte(i)
		c.Memory = append(c.Memory, Memory{Address: i * 2 * each, Data: data})
	}
	s := openBytes(t, writeBytes(t, c))
	for i := range uint64(6) {
		check(t, "empty memory", []byte{byte(i), 0}, func(buf []byte) (int, error) { return s.ReadMemory(0, i*2*each, buf) })
	}
}

func TestContentsThatNoReaderTakesAreErrors(t *testing.T) {
	long := strings.Repeat("x", jsontext.MaxText+1)
	registers := func(numbers map[uint32][]byte) (r sdk.Registers) {
		for n, v := range numbers {
			r.Set(n, v)
		}
		return r
	}
	wave := &trace.Thread{ID: "w", Arch: "gpu", Lanes: 64}
	segment := func(address, size, start uint64) Module {
		return Module{Module: &target.Module{Module: trace.Module{Arch: "host", Segments: []trace.Segment{{Address: address, Size: size, Start: start}}}}}
	}
	thread := func(t trace.Thread) *Contents {
		if t.Arch == "" {
			t.Arch = "host"
		}
		return &Contents{Threads: []*trace.Thread{&t}}
	}
	for _, tt := range []struct {
		name, want string
		c          *Contents
	}{
		{"many modules", "modules: 16385 elements, expected at most 16384", &Contents{Modules: make([]Module, maxModules+1)}},
		{"many threads", "threads: 1048577 elements", &Contents{Threads: make([]*trace.Thread, maxThreads+1)}},
		{"much memory", "memory: 524289 elements", &Contents{Memory: make([]Memory, maxWritten+1)}},
		{"segments that overlap", "the segments at 0x10 and 0x1f overlap", &Contents{Modules: []Module{segment(0, 16, 16), segment(0, 16, 31)}}},
		{"a segment past the end", "a segment of 0x10 bytes", &Contents{Modules: []Module{segment(0, 16, ^uint64(0))}}},
		{"a long path", "modules[0]: a string of 65537 bytes", &Contents{Modules: []Module{{Module: &target.Module{Module: trace.Module{Path: long}}}}}},
		{"a long id", "threads[0]: a string of 65537 bytes", thread(trace.Thread{ID: long})},
		{"many lanes", "threads[0]: lanes 4097", thread(trace.Thread{Lanes: 4097})},
		{"a negative signal", "threads[0]: lanes 0, signal -1", thread(trace.Thread{Signal: -1})},
		{"a reason of another kind", `"boredom" is why it stopped, expected breakpoint, watchpoint`, thread(trace.Thread{Stop: &trace.Stop{Reason: "boredom"}})},
		{"an address of what has none", "it stopped by trap, which has no address or trap ID", thread(trace.Thread{Stop: &trace.Stop{Reason: sdk.StopTrap, HasAddress: true}})},
		{"a trap's number of what has none", "it stopped by ecc-error, which has no address or trap ID", thread(trace.Thread{Stop: &trace.Stop{Reason: sdk.StopECCError, HasTrapID: true}})},
		{"a trap's number of many bits", "it stopped by trap 65536, expected at most 65535", thread(trace.Thread{Stop: &trace.Stop{Reason: sdk.StopTrap, TrapID: 65536, HasTrapID: true}})},
		{"registers of no architecture", "there is no architecture of that name", thread(trace.Thread{Arch: "vax", Registers: registers(map[uint32][]byte{1: {1}})})},
		{"a register that is none", "architecture host has no register 77", thread(trace.Thread{Registers: registers(map[uint32][]byte{77: {1}})})},
		{"a register with too many bits", "flags is 0x1f, expected at most 4 bits", thread(trace.Thread{Registers: registers(map[uint32][]byte{hostFlags: {0x1f}})})},
		{"a part of a vector", "x0 has 5 bytes, expected 64", thread(trace.Thread{Registers: registers(map[uint32][]byte{hostX0: fill(0, 5)})})},
		{"registers of two lane counts", "is of threads with 64 lanes, the thread has 32", thread(trace.Thread{Arch: "gpu", Registers: registers(map[uint32][]byte{gpuExec32: fill(0, 4), gpuExec64: fill(0, 8)})})},
		{"registers that are none", "Registers.Offsets", thread(trace.Thread{Registers: sdk.Registers{Numbers: []uint32{1}}})},
		{"a base of the default space", "a base of address space 0", thread(trace.Thread{Spaces: []sdk.SpaceBase{{Space: 0}}})},
		{"evidence of another kind", `evidence "rumour"`, thread(trace.Thread{LaunchedBy: &trace.Launch{Evidence: "rumour"}})},
		{"many frames of a launcher", "65537 frames of its launcher", thread(trace.Thread{LaunchedBy: &trace.Launch{Evidence: "queue", Frames: make([]uint64, maxFrames+1)}})},
		{"memory that overlaps", "memory[0] and memory[1] overlap at address 0x1001", &Contents{Memory: []Memory{{Address: 0x1000, Data: fill(0, 2)}, {Address: 0x1001, Data: fill(0, 1)}}}},
		{"memory of no bytes", "memory[0]: 0 bytes", &Contents{Memory: []Memory{{}}}},
		{"memory past the end", "memory[0]: 2 bytes at address 0xffffffffffffffff", &Contents{Memory: []Memory{{Address: ^uint64(0), Data: fill(0, 2)}}}},
		{"memory of nobody", "memory[0]: address space 6, address 0x0: of no thread", &Contents{Memory: []Memory{{Space: 6, Data: fill(0, 2)}}}},
		{"memory of twins", "or of one whose ID is not its alone", &Contents{Threads: []*trace.Thread{wave, wave}, Memory: []Memory{{Space: 6, Thread: wave, Data: fill(0, 2)}}}},
		{"memory of a lane", "no address space 5 that a thread has an instance of", &Contents{Threads: []*trace.Thread{wave}, Memory: []Memory{{Space: 5, Thread: wave, Data: fill(0, 2)}}}},
		{"a source module that cannot be read", "gone", &Contents{Modules: []Module{{Module: &target.Module{SourceModule: func() ([]byte, error) { return nil, errors.New("gone") }}}}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := Write(&b, tt.c, options()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, expected %q", err, tt.want)
			}
		})
	}
}

func TestRegistersAreFormattedAsTheyAreParsed(t *testing.T) {
	for _, arch := range []string{"host", "big", "gpu"} {
		d, _ := options().Describe(arch)
		for _, r := range d.Registers {
			info, _ := d.Register(r.First)
			text := "0x" + strings.Repeat("9", int(info.Bits)/4)
			if IsVector(info) {
				text = strings.Repeat("0123456789abcdef", int(info.Bits)/64)
			}
			value, err := ParseRegister(info, d.ByteOrder, text)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := FormatRegister(info, d.ByteOrder, value); err != nil || again != text {
				t.Errorf("%s of %s: %s, %v; expected %s", info.Name, arch, again, err, text)
			}
		}
	}
}
