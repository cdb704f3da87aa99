// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// fill is n bytes that begin with b and count up.
func fill(b byte, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = b + byte(i)
	}
	return out
}

// full is a snapshot with everything in it: a process of the host that waits
// for two waves of two dispatches.
func full() (document obj, files []file) {
	id := []byte{0xab, 0xcd}
	return obj{
			"format_version": 1,
			"comment":        []any{"unknown members are ignored", obj{"a": nil}},
			"modules": []any{
				obj{"path": "/usr/bin/gone", "build_id": "00ff", "arch": "host", "segments": []any{
					obj{"address": "0x0", "size": "0x100", "start": "0x900000"}}},
				obj{"path": "/usr/bin/app", "build_id": hex.EncodeToString(id), "arch": "host", "file": "modules/app", "segments": []any{
					obj{"address": "0x1000", "size": "0x40", "start": "0x401000"},
					obj{"address": "0x2000", "size": "0x40", "start": "0x402000"}}},
				obj{"path": "file:///tmp/kernel.co", "arch": "gpu", "processor": "only64", "file": "modules/kernel", "source_module": "modules/kernel.bc",
					"segments": []any{obj{"section": "", "address": "0x1000", "size": "0x40", "start": "0x7f0000001000"}}},
			},
			"threads": []any{
				obj{"id": "100", "name": "app", "arch": "host", "crashed": false, "registers": obj{
					"sp": "0x7000", "PC": "0x401010", "flags": "0xA", "x0": hex.EncodeToString(fill(0, 64)),
					"x1": hex.EncodeToString(fill(1, 16)), "st1": "0x3fff8000000000000001"}},
				obj{"id": "w0", "arch": "gpu", "processor": "only64", "lanes": 64, "crashed": true, "signal": 11,
					"stop":        obj{"reason": "memory-fault", "address": "0x7f0000f00010", "pc_exact": false},
					"registers":   obj{"PC": "0x7f0000001010", "s0": "0x1", "EXEC": "0xffffffffffffffff", "v0": hex.EncodeToString(fill(3, 256))},
					"spaces":      obj{"private_wave": obj{"base": "0x10000"}, "local": obj{"base": "0x20000"}},
					"wave":        obj{"agent": "a0", "queue": "q0", "dispatch": "d0", "kernel": "add(int*)", "group": []any{1, 2, 3}, "in_group": 0},
					"launched_by": obj{"thread": "100", "kind": "dispatch", "evidence": "waiting", "frames": []any{"0x401010", "0x401020"}}},
				obj{"id": 7, "arch": "gpu", "lanes": 32, "stop": obj{"reason": "trap", "trap_id": 2}, "registers": obj{"pc_64": "0x7f0000001020", "exec": "0xff", "VGPR3": hex.EncodeToString(fill(9, 128))},
					"wave": obj{"agent": "a0", "queue": "q0", "dispatch": 1, "group": []any{1, 2, 4}, "in_group": 1}},
			},
			"memory": []any{
				obj{"file": "memory/stack", "address": "0x7000"},
				obj{"file": "memory/shared", "space": "none", "address": "0x8000"},
				obj{"file": "memory/w0", "space": "Private_Wave", "address": "0x40", "scope": obj{"wave": "w0"}},
				obj{"file": "memory/w7", "space": "private_wave", "address": "0x40", "scope": obj{"wave": 7}},
				obj{"file": "memory/lds", "space": "local", "address": "0x0", "scope": obj{"dispatch": "d0", "group": []any{1, 2, 3}}},
				obj{"file": "memory/agent", "space": "agent", "address": "0x0", "scope": obj{"agent": "a0"}},
				obj{"file": "memory/generic", "space": "generic", "address": "0x100"},
			},
		}, []file{
			{"modules/app", elfFile(62, id), false},
			{"modules/kernel", elfFile(224, []byte{1}), true},
			{"modules/kernel.bc", []byte("BC\xc0\xde"), false},
			{"memory/stack", fill(0, 256), true},
			{"memory/shared", fill(0x80, 64), false},
			{"memory/w0", fill(0x10, 32), false},
			{"memory/w7", fill(0x20, 32), true},
			{"memory/lds", fill(0x30, 32), false},
			{"memory/agent", fill(0x40, 32), false},
			{"memory/generic", fill(0x50, 32), false},
		}
}

func openFull(t testing.TB) *Snapshot {
	d, files := full()
	return openDocument(t, d, files...)
}

func TestThreadsAreReadWithAllThatIsSaidOfThem(t *testing.T) {
	s := openFull(t)
	want := []*trace.Thread{
		{Handle: 0, ID: "100", Name: "app", Arch: "host"},
		{
			Handle: 1, ID: "w0", Arch: "gpu", Processor: "only64", Crashed: true, Signal: 11,
			Stop: &trace.Stop{Reason: sdk.StopMemoryFault, Address: 0x7f0000f00010, HasAddress: true, HasPCExact: true}, Lanes: 64,
			Spaces:     []sdk.SpaceBase{{Space: 3, Base: 0x20000}, {Space: 6, Base: 0x10000}},
			Wave:       &sdk.Wave{Agent: "a0", Queue: "q0", Dispatch: "d0", Kernel: "add(int*)", Group: [3]uint32{1, 2, 3}, HasGroup: true, HasInGroup: true},
			LaunchedBy: &trace.Launch{Thread: "100", Kind: "dispatch", Evidence: "waiting", Frames: []uint64{0x401010, 0x401020}},
		},
		{Handle: 2, ID: "7", Arch: "gpu", Lanes: 32, Stop: &trace.Stop{Reason: sdk.StopTrap, TrapID: 2, HasTrapID: true},
			Wave: &sdk.Wave{Agent: "a0", Queue: "q0", Dispatch: "1", Group: [3]uint32{1, 2, 4}, InGroup: 1, HasGroup: true, HasInGroup: true}},
	}
	registers := []map[uint32][]byte{
		{
			hostSP: {0, 0x70, 0, 0, 0, 0, 0, 0}, hostPC: {0x10, 0x10, 0x40, 0, 0, 0, 0, 0}, hostFlags: {10},
			hostX0: fill(0, 64), hostX0 + 1: fill(1, 16), hostST0 + 1: {1, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x3f},
		},
		{
			gpuPC: {0x10, 0x10, 0, 0, 0, 0x7f, 0, 0}, gpuS0: {1, 0, 0, 0}, gpuExec64: {255, 255, 255, 255, 255, 255, 255, 255},
			gpuV0of64: fill(3, 256),
		},
		{gpuPC: {0x20, 0x10, 0, 0, 0, 0x7f, 0, 0}, gpuExec32: {0xff, 0, 0, 0}, gpuV0of32 + 3: fill(9, 128)},
	}
	for i, th := range s.Threads() {
		if err := th.Registers.Validate(); err != nil {
			t.Errorf("thread %d: %v", i, err)
		}
		got := map[uint32][]byte{}
		for _, n := range th.Registers.Numbers {
			got[n], _ = th.Registers.Get(n)
		}
		if d := cmp.Diff(registers[i], got); d != "" {
			t.Errorf("registers of thread %d (-want +got):\n%s", i, d)
		}
		c := *th
		c.Registers = sdk.Registers{}
		if d := cmp.Diff(want[i], &c); d != "" {
			t.Errorf("thread %d (-want +got):\n%s", i, d)
		}
	}
	info := s.Info()
	if info.Kind != trace.Snapshot || info.Signal != 11 || !info.HasFaultAddress || info.FaultAddress != 0x7f0000f00010 ||
		info.Machine != 62 || len(info.Problems) > 0 {
		t.Errorf("%+v", info)
	}
}

func TestRegistersAreInTheByteOrderOfTheArchitecture(t *testing.T) {
	s := openDocument(t, obj{"format_version": 1, "threads": []any{
		obj{"id": "1", "arch": "big", "registers": obj{"pc": "0x0102", "x0": hex.EncodeToString(fill(0, 64))}}}})
	r := &s.Threads()[0].Registers
	pc, _ := r.Get(hostPC)
	x0, _ := r.Get(hostX0)
	if string(pc) != "\x00\x00\x00\x00\x00\x00\x01\x02" || x0[63] != 0 || x0[0] != 63 {
		t.Errorf("pc %x, x0 %x", pc, x0)
	}
}

func TestModulesComeFromMembersAndFiles(t *testing.T) {
	s := openFull(t)
	mods := s.Modules()
	type summary struct {
		ID        int
		Path      string
		BuildID   string
		Arch      string
		Processor string
		Machine   uint16
		Problem   bool
		Segments  []trace.Segment
	}
	var got []summary
	for _, m := range mods {
		sum := summary{m.ID, m.Path, hex.EncodeToString(m.BuildID), m.Arch, m.Processor, 0, m.Problem != "", m.Segments}
		if m.Object != nil {
			sum.Machine = m.Object.Machine()
			if want := s.path + ":modules/"; !strings.HasPrefix(m.File, want) {
				t.Errorf("file %s, expected %s...", m.File, want)
			}
		}
		got = append(got, sum)
	}
	want := []summary{
		{0, "/usr/bin/app", "abcd", "host", "", 62, false, []trace.Segment{
			{Address: 0x1000, Size: 0x40, Start: 0x401000, Executable: true}, {Address: 0x2000, Size: 0x40, Start: 0x402000}}},
		{1, "/usr/bin/gone", "00ff", "host", "", 0, true, []trace.Segment{{Size: 0x100, Start: 0x900000, Executable: true}}},
		{2, "file:///tmp/kernel.co", "01", "gpu", "only64", 224, false, []trace.Segment{
			{Address: 0x1000, Size: 0x40, Start: 0x7f0000001000, Executable: true}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if p := mods[1].Problem; !strings.Contains(p, "/usr/bin/gone: no file with build ID 00ff") {
		t.Errorf("problem %q", p)
	}
	if mods[0].SourceModule != nil {
		t.Error("the host's module has a source module")
	}
	if b, err := mods[2].SourceModule(); err != nil || string(b) != "BC\xc0\xde" {
		t.Errorf("source module %q, %v", b, err)
	}
}

func TestModulesWithoutMemberAreFoundByBuildID(t *testing.T) {
	dir := t.TempDir()
	right := elfFile(62, []byte{1, 2, 3})
	for name, data := range map[string][]byte{"right": right, "app": elfFile(62, []byte{9})} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data := archiveOf(t, documentOf(t, obj{"format_version": 1, "modules": []any{
		obj{"path": "/nowhere/app", "build_id": "010203", "arch": "host", "segments": []any{
			obj{"address": "0x1000", "size": "0x40", "start": "0x1000"}}},
		obj{"path": "/nowhere/app", "build_id": "010203", "arch": "host", "file": "modules/none"},
	}}))
	o := options()
	o.Finder = object.Finder{Folders: []string{dir}}
	s, err := Open(write(t, data), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i, want := range []string{"", `the archive has no member "modules/none"`} {
		m := s.Modules()[i]
		if m.Object == nil || m.File != filepath.Join(dir, "right") || m.Problem != want {
			t.Errorf("module %d: object %v of %s, problem %q, expected %q", i, m.Object != nil, m.File, m.Problem, want)
		}
	}

	// The user's file stands for the module that has its name or build ID.
	o.Finder = object.Finder{Exe: filepath.Join(dir, "right")}
	s2, err := Open(write(t, data), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s2.Close()
	if m := s2.Modules()[0]; m.File != o.Finder.Exe || m.Problem != "" {
		t.Errorf("file %s, problem %q", m.File, m.Problem)
	}
	data = archiveOf(t, documentOf(t, obj{"format_version": 1, "modules": []any{
		obj{"path": "/nowhere/app", "arch": "host"}, obj{"path": "/nowhere/lib", "arch": "host"}}}))
	for exe, want := range map[string][]string{
		filepath.Join(dir, "app"):   nil,
		filepath.Join(dir, "right"): {filepath.Join(dir, "right") + " was not used: no module has its name or build ID"},
		filepath.Join(dir, "none"):  {filepath.Join(dir, "none") + " was not used: no module has its name or build ID"},
	} {
		o.Finder = object.Finder{Exe: exe}
		s, err := Open(write(t, data), o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got := s.Modules()[0].File; want == nil && got != exe || want != nil && got != "" || s.Modules()[1].File != "" {
			t.Errorf("--exe %s: file %q", exe, got)
		}
		if d := cmp.Diff(want, problems(s)); d != "" {
			t.Errorf("--exe %s: problems (-want +got):\n%s", exe, d)
		}
	}
}

// check reads memory and compares.
func check(t *testing.T, what string, want []byte, read func(buf []byte) (int, error)) {
	t.Helper()
	buf := make([]byte, len(want))
	if n, err := read(buf); err != nil || n != len(want) || string(buf) != string(want) {
		t.Errorf("%s: %d bytes %x, %v; expected %x", what, n, buf, err, want)
	}
}

func TestMemoryIsReadFromPiecesAndCode(t *testing.T) {
	s := openFull(t)
	for _, tt := range []struct {
		what    string
		address uint64
		want    []byte
	}{
		{"stored", 0x7010, fill(0x10, 16)},
		{"deflated", 0x8000, fill(0x80, 64)},
		{"code", 0x401000, fill(0, codeSize)},
		{"code of a stored member", 0x7f0000001008, fill(8, 8)},
	} {
		check(t, tt.what, tt.want, func(buf []byte) (int, error) { return s.ReadMemory(0, tt.address, buf) })
	}
	for _, tt := range []struct {
		what    string
		address uint64
		want    int
	}{
		{"the end of a piece", 0x70f0, 16},
		{"data that may have been written", 0x402000, 0},
		{"nothing", 0x100, 0},
		{"a piece of another space", 0x40, 0},
		{"the last address", ^uint64(0) - 1, 0},
	} {
		buf := make([]byte, 32)
		if n, err := s.ReadMemory(0, tt.address, buf); n != tt.want || !errors.Is(err, target.ErrNoMemory) {
			t.Errorf("%s: %d bytes, %v; expected %d and ErrNoMemory", tt.what, n, err, tt.want)
		}
	}
	if n, err := s.ReadMemory(6, 0x40, make([]byte, 1)); n != 0 || !errors.Is(err, target.ErrNoMemory) {
		t.Errorf("space 6 of no thread: %d bytes, %v", n, err)
	}
}

func TestSpacesHaveInstances(t *testing.T) {
	s := openFull(t)
	host, w0, w7 := s.Threads()[0], s.Threads()[1], s.Threads()[2]
	copied := *w0
	for _, tt := range []struct {
		what    string
		thread  *trace.Thread
		space   locexpr.AddressSpace
		address uint64
		want    []byte // nil: ErrNoMemory
	}{
		{"a wave's", w0, 6, 0x48, fill(0x18, 8)},
		{"another wave's", w7, 6, 0x48, fill(0x28, 8)},
		{"a group's", w0, 3, 0, fill(0x30, 8)},
		{"a group's, from another group", w7, 3, 0, nil},
		{"an agent's", w0, 4, 0, fill(0x40, 8)},
		{"an agent's, from another wave", w7, 4, 0, fill(0x40, 8)},
		{"the process's", w7, 1, 0x100, fill(0x50, 8)},
		{"the default space", w7, 0, 0x7000, fill(0, 8)},
		{"a lane's", w0, 5, 0x40, nil},
		{"a space that is not there", w0, 99, 0, nil},
		{"another architecture's", host, 6, 0x40, nil},
		{"nobody's", nil, 6, 0x40, nil},
		{"a thread of another target", &trace.Thread{Handle: 1, Arch: "gpu"}, 6, 0x40, nil},
		{"a thread of another target that looks like one", &copied, 6, 0x40, nil},
		{"past the end", w0, 6, 0x60, nil},
	} {
		if tt.want != nil {
			check(t, tt.what, tt.want, func(buf []byte) (int, error) { return s.ReadScoped(tt.space, tt.thread, tt.address, buf) })
			continue
		}
		if n, err := s.ReadScoped(tt.space, tt.thread, tt.address, make([]byte, 8)); n != 0 || !errors.Is(err, target.ErrNoMemory) {
			t.Errorf("%s: %d bytes, %v; expected ErrNoMemory", tt.what, n, err)
		}
	}
}

func TestNarrowerScopesComeFirst(t *testing.T) {
	wave := func(id string, in int) obj {
		return obj{"id": id, "arch": "gpu", "lanes": 64, "registers": obj{"pc": "0x0"},
			"wave": obj{"agent": "a", "dispatch": "d", "group": []any{0, 0, 0}, "in_group": in}}
	}
	s := openDocument(t, obj{"format_version": 1, "threads": []any{wave("w0", 0), wave("w1", 1)}, "memory": []any{
		obj{"file": "group", "space": "local", "address": "0x0", "scope": obj{"group": []any{0, 0, 0}}},
		obj{"file": "wave", "space": "local", "address": "0x4", "scope": obj{"wave": "w1"}},
	}}, file{"group", fill(0, 16), false}, file{"wave", fill(0xf0, 4), false})
	if p := s.Info().Problems; len(p) > 0 {
		t.Error(p)
	}
	for i, want := range []string{"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09", "\x00\x01\x02\x03\xf0\xf1\xf2\xf3\x08\x09"} {
		check(t, "local", []byte(want), func(buf []byte) (int, error) { return s.ReadScoped(3, s.Threads()[i], 0, buf) })
	}
}

func TestMemoryThatCouldBeAnothersIsNobodys(t *testing.T) {
	wave := func(id, dispatch string, group any) obj {
		w := obj{"agent": "a", "dispatch": dispatch}
		if group != nil {
			w["group"] = group
		}
		return obj{"id": id, "arch": "gpu", "lanes": 64, "registers": obj{"pc": "0x0"}, "wave": w}
	}
	zero, one := []any{0, 0, 0}, []any{1, 0, 0}
	s := openDocument(t, obj{"format_version": 1, "threads": []any{
		wave("twin", "d0", zero), wave("twin", "d1", zero), wave("w2", "d1", one), wave("no group", "d2", nil),
		obj{"id": "no wave", "arch": "gpu", "lanes": 64, "signal": 5, "registers": obj{"pc": "0x0"}},
	}, "memory": []any{
		obj{"file": "m", "space": "private_wave", "address": "0x0", "scope": obj{"wave": "twin"}},
		obj{"file": "m", "space": "local", "address": "0x0", "scope": obj{"group": zero}},
		obj{"file": "m", "space": "local", "address": "0x100", "scope": obj{"group": one, "agent": "a"}},
		obj{"file": "m", "space": "local", "address": "0x200", "scope": obj{"group": zero, "dispatch": "d2"}},
		obj{"file": "m", "space": "local", "address": "0x300", "scope": obj{"group": zero, "dispatch": "d1"}},
	}}, file{"m", fill(0, 16), false})
	want := []string{
		`thread "twin": there are several with this id: none has memory of its own`,
		"memory[1]: several dispatches have a group [0 0 0]: it is left out",
	}
	if d := cmp.Diff(want, problems(s)); d != "" {
		t.Errorf("problems (-want +got):\n%s", d)
	}
	if s.Info().Signal != 0 {
		t.Errorf("signal %d of a thread that did not crash", s.Info().Signal)
	}
	for _, tt := range []struct {
		space   locexpr.AddressSpace
		address uint64
		seenBy  []int // threads
	}{
		{6, 0, nil}, {3, 0, nil}, {3, 0x100, []int{2}}, {3, 0x200, nil}, {3, 0x300, []int{1}},
	} {
		var seen []int
		for i, th := range s.Threads() {
			if _, err := s.ReadScoped(tt.space, th, tt.address, make([]byte, 16)); err == nil {
				seen = append(seen, i)
			}
		}
		if d := cmp.Diff(tt.seenBy, seen); d != "" {
			t.Errorf("space %d, address %#x (-want +got):\n%s", tt.space, tt.address, d)
		}
	}
}

func TestOverlappingMemoryBelongsToThePieceThatStartsFirst(t *testing.T) {
	s := openDocument(t, obj{"format_version": 1, "memory": []any{
		obj{"file": "b", "address": "0x1008"},
		obj{"file": "a", "address": "0x1000"},
		obj{"file": "inner", "address": "0x1002"},
		obj{"file": "inner", "address": "0x1000"},
		obj{"file": "a", "address": "0x1018"},
	}}, file{"a", fill(0, 16), false}, file{"b", fill(0x80, 16), true}, file{"inner", fill(0xe0, 4), false})
	check(t, "pieces", []byte(string(fill(0, 16))+string(fill(0x88, 8))+string(fill(0, 16))),
		func(buf []byte) (int, error) { return s.ReadMemory(0, 0x1000, buf) })
	want := []string{
		"memory[3] overlaps memory[1] in 0x4 bytes at address 0x1000: those of memory[1] are taken",
		"memory[2] overlaps memory[1] in 0x4 bytes at address 0x1002: those of memory[1] are taken",
		"memory[0] overlaps memory[1] in 0x8 bytes at address 0x1008: those of memory[1] are taken",
	}
	if d := cmp.Diff(want, problems(s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// problems are the problems without the file's name.
func problems(s *Snapshot) []string {
	var list []string
	for _, p := range s.Info().Problems {
		list = append(list, strings.TrimPrefix(p, s.path+": "))
	}
	return list
}

func TestMappedTellsCodeFromData(t *testing.T) {
	s := openFull(t)
	for _, tt := range []struct {
		address            uint64
		mapped, executable bool
	}{
		{0x401000, true, true}, {0x40103f, true, true}, {0x401040, false, false}, {0x400fff, false, false},
		{0x402000, true, false}, {0x7000, true, false}, {0x7100, false, false}, {0x900010, true, true},
		{0, false, false}, {^uint64(0), false, false},
	} {
		if mapped, executable := s.Mapped(tt.address); mapped != tt.mapped || executable != tt.executable {
			t.Errorf("%#x: %v, %v; expected %v, %v", tt.address, mapped, executable, tt.mapped, tt.executable)
		}
	}
}

func TestPiecesComeBeforeTheBytesOfCodeObjects(t *testing.T) {
	d, files := full()
	d["memory"] = []any{obj{"file": "memory/patch", "address": "0x401008"}}
	s := openDocument(t, d, append(files, file{"memory/patch", []byte{0xcc, 0xcd}, false})...)
	want := fill(0, 16)
	want[8], want[9] = 0xcc, 0xcd
	check(t, "patched code", want, func(buf []byte) (int, error) { return s.ReadMemory(0, 0x401000, buf) })
}

func TestMembersAreDecompressedOnceWhoeverAsks(t *testing.T) {
	s := openFull(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			buf := make([]byte, 64)
			for range 100 {
				if _, err := s.ReadMemory(0, 0x8000, buf); err != nil {
					t.Error(err)
				}
				if _, err := s.ReadScoped(3, s.Threads()[1], 0, buf[:8]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	// Of what was read only the deflated members count, each once.
	if got, want := s.archive.inflated, uint64(len(elfFile(62, []byte{0xab, 0xcd}))+64+32); got != want {
		t.Errorf("%d bytes are decompressed, expected %d", got, want)
	}
}

func TestLaneCountsTellWhichRegistersNamesMean(t *testing.T) {
	wide, narrow := hex.EncodeToString(fill(0, 256)), hex.EncodeToString(fill(0, 128))
	for _, tt := range []struct {
		name    string
		thread  obj
		want    []uint32
		problem string
	}{
		{"lanes", obj{"lanes": 32, "registers": obj{"exec": "0x1", "pc": "0x0"}}, []uint32{gpuExec32, gpuPC}, ""},
		{"width of another register", obj{"registers": obj{"exec": "0x1", "pc": "0x0", "v2": wide}}, []uint32{gpuPC, gpuExec64, gpuV0of64 + 2}, ""},
		{"narrow width", obj{"registers": obj{"exec": "0x1", "pc": "0x0", "v2": narrow}}, []uint32{gpuExec32, gpuPC, gpuV0of32 + 2}, ""},
		{"processor", obj{"processor": "only64", "registers": obj{"exec": "0x1", "pc": "0x0"}}, []uint32{gpuPC, gpuExec64}, ""},
		{"low part", obj{"lanes": 64, "registers": obj{"v0": narrow, "pc": "0x0"}}, []uint32{gpuPC, gpuV0of64}, ""},
		{"nothing tells", obj{"processor": "both", "registers": obj{"exec": "0x1", "pc": "0x0"}}, []uint32{gpuPC},
			"register exec: there are 2 of that name, and neither lanes nor the width of the value tells which is meant"},
		{"widths disagree", obj{"registers": obj{"exec": "0x1", "pc": "0x0", "v1": narrow, "v2": wide}}, []uint32{gpuPC, gpuV0of32 + 1, gpuV0of64 + 2},
			"register exec: there are 2 of that name, and neither lanes nor the width of the value tells which is meant"},
		{"no such waves", obj{"lanes": 16, "registers": obj{"exec": "0x1", "pc": "0x0"}}, []uint32{gpuPC}, "register exec: threads with 16 lanes have none"},
		{"too wide", obj{"lanes": 32, "registers": obj{"v0": wide, "pc": "0x0"}}, []uint32{gpuPC}, "register vgpr0 has 512 hexadecimal digits, expected 256"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.thread["id"], tt.thread["arch"] = "w", "gpu"
			s := openDocument(t, obj{"format_version": 1, "threads": []any{tt.thread}})
			if d := cmp.Diff(tt.want, s.Threads()[0].Registers.Numbers); d != "" {
				t.Errorf("registers (-want +got):\n%s", d)
			}
			var want []string
			if tt.problem != "" {
				want = []string{`thread "w": ` + tt.problem}
			}
			if d := cmp.Diff(want, problems(s)); d != "" {
				t.Errorf("problems (-want +got):\n%s", d)
			}
		})
	}
}
