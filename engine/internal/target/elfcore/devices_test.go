// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/sdk"
)

// noteReader answers for the notes of devices what it is told to.
type noteReader struct {
	answer sdk.OpenTargetAnswer
	err    error
	asked  func(e sdk.Engine, req *sdk.OpenTargetRequest)
}

func (r *noteReader) Description() *sdk.Description {
	return &sdk.Description{Name: "device", Recognises: []sdk.Recogniser{{ELFMachine: uint16(elf.EM_AMDGPU), NoteOwner: "DEV"}}}
}

func (r *noteReader) OpenTarget(_ context.Context, e sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	if r.asked != nil {
		r.asked(e, req)
	}
	return &r.answer, r.err
}

func (r *noteReader) options() Options {
	return Options{ForNote: func(owner string) (NoteReader, error) {
		if owner != "DEV" {
			return nil, fmt.Errorf("%s: %w", owner, target.ErrNoArchitecture)
		}
		return r, nil
	}}
}

// devicesCore is the core of a process of threads 7 and 8, with a note of devices where it
// is asked for, and memory at 0x1000.
func devicesCore(hasNote bool) *builder {
	b := little64()
	status := func(pid int32) []byte { return b.note(nil, coreOwner, ntPRSTATUS, b.status(pid, 0, 0x100, 0)) }
	notes := append(status(7), status(8)...)
	if hasNote {
		notes = append(notes, b.note(nil, "DEV", 33, []byte("state"))...)
	}
	b.parts = []part{
		{typ: elf.PT_NOTE, data: notes},
		{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_W, address: 0x1000, data: []byte("0123456789abcdef")},
	}
	return b
}

// opened opens the bytes of a core.
func opened(data []byte, options Options) (*Core, error) {
	options.Describe = noArchitecture
	c := &Core{path: "core"}
	if err := c.open(data, options); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func TestThreadsOfDevicesJoinThoseOfTheProcess(t *testing.T) {
	r := &noteReader{answer: sdk.OpenTargetAnswer{
		Kind:          "device-core",
		WaitFunctions: []string{"wait"},
		Agents:        []sdk.TargetAgent{{ID: "1", Processor: "p"}},
		Queues:        []sdk.TargetQueue{{ID: "1", Agent: "1"}},
		Dispatches:    []sdk.TargetDispatch{{ID: "1", Queue: "1", Signal: 0x55}},
		Threads: []sdk.TargetThread{
			{ID: "7", Lanes: 64, Wave: sdk.Wave{Dispatch: "1"}, HasCrashed: true, Stop: sdk.ThreadStop{Reason: "trap"}},
			{ID: "w2", IsRunning: true, LauncherThread: "8", LaunchKind: "dispatch", LaunchEvidence: "recorded", Wave: sdk.Wave{Dispatch: "1"}},
			{ID: "w3", Problem: "it is damaged"},
		},
		Problems: []string{"one wave is left out"},
	}}
	r.asked = func(e sdk.Engine, req *sdk.OpenTargetRequest) {
		if len(req.Notes) != 1 || string(req.Notes[0].Data) != "state" {
			t.Errorf("notes %+v", req.Notes)
		}
		buf := make([]byte, 8)
		n, err := e.ReadMemory(t.Context(), sdk.MemoryRange{Address: 0x100c}, buf)
		if string(buf[:n]) != "cdef" || !errors.Is(err, target.ErrNoMemory) {
			t.Errorf("memory %q, %v", buf[:n], err)
		}
		if _, err := e.ReadRegisters(t.Context(), 0, nil); err == nil {
			t.Error("registers of threads that are not known yet")
		}
		if _, err := e.ReadSection(t.Context(), 0, ".text"); err == nil {
			t.Error("a section of an object that is not known yet")
		}
	}
	c, err := opened(devicesCore(true).core(), r.options())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got []string
	for i, th := range c.Threads() {
		if th.Handle != uint64(i) {
			t.Errorf("thread %d has handle %d", i, th.Handle)
		}
		text := th.ID + " " + th.Arch
		if th.Wave != nil {
			text += " wave"
		}
		if by := th.LaunchedBy; by != nil {
			text += fmt.Sprintf(" %s %s %#x %v", by.Thread, by.Evidence, by.Signal, by.WaitFunctions)
		}
		if th.Stop != nil {
			text += " " + th.Stop.Reason
		}
		got = append(got, text+th.Problem)
	}
	want := []string{
		"7 ", "8 ", // nobody reads their registers here
		"device-7 device wave  queue 0x55 [wait] trap",
		"w2 device wave 8 recorded 0x0 []",
		"w3 deviceit is damaged",
	}
	for i := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("threads\n%s, expected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			break
		}
	}
	info := c.Info()
	if info.Kind != "device-core" || len(info.Devices.Agents) != 1 || len(info.Devices.Dispatches) != 1 || info.Unread {
		t.Errorf("%+v", info)
	}
	if p := strings.Join(info.Problems, "\n"); !strings.Contains(p, "notes of DEV: one wave is left out") {
		t.Errorf("problems %s", p)
	}
}

func TestNotesOfDevicesThatAreNotRead(t *testing.T) {
	for _, c := range []struct {
		what string
		r    *noteReader
		want string // of the problems
		is   bool   // something is unread
	}{
		{"a plugin that fails", &noteReader{err: errors.New("it hangs")}, "the notes of DEV are not read: it hangs", true},
		{"no wave that can be read", &noteReader{answer: sdk.OpenTargetAnswer{Kind: "k", Problems: []string{"unknown processor"}}}, "unknown processor", true},
		{"nothing of the vendor's", &noteReader{}, "", false},
	} {
		of, err := opened(devicesCore(true).core(), c.r.options())
		if err != nil {
			t.Fatal(err)
		}
		info := of.Info()
		if problems := strings.Join(info.Problems, "\n"); info.Unread != c.is || !strings.Contains(problems, c.want) || len(of.Threads()) != 2 {
			t.Errorf("%s: unread %v, %d threads, problems %s", c.what, info.Unread, len(of.Threads()), problems)
		}
		of.Close()
	}
}

func TestCodeObjectsOfDevices(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "k.co")
	image := (&builder{numbers: little64().numbers, typ: elf.ET_DYN, machine: elf.EM_AMDGPU}).core()
	if err := os.WriteFile(file, append(make([]byte, 64), image...), 0o600); err != nil {
		t.Fatal(err)
	}
	b := devicesCore(true)
	b.parts = append(b.parts, part{typ: elf.PT_LOAD, flags: elf.PF_R, address: 0x8000, data: image})
	size := uint64(len(image))
	r := &noteReader{answer: sdk.OpenTargetAnswer{Kind: "k", Objects: []sdk.TargetObject{
		{URI: "part", Path: file, Offset: 64, Size: size, Bias: 0x10000},
		{URI: "rest", Path: file, Offset: 64, Bias: 0x20000},
		{URI: "memory", MemoryAddress: 0x8000, Size: size, Bias: 0x30000},
		{URI: "beyond", Path: file, Offset: 64, Size: size + 1, Bias: 0x40000},
		{URI: "far", Path: file, Offset: ^uint64(0), Size: 2, Bias: 0x50000},
		{URI: "gone", Path: filepath.Join(dir, "none"), Bias: 0x60000},
		{URI: "nowhere", MemoryAddress: 0x9000_0000, Size: 64, Bias: 0x70000},
		{URI: "huge", MemoryAddress: 0x8000, Size: 1 << 62, Bias: 0x80000},
	}}}
	c, err := opened(b.core(), r.options())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := map[string]string{
		"part": "", "rest": "", "memory": "", "beyond": "ends at offset", "far": "ends at offset", "gone": "no such file",
		"nowhere": "is not in the core", "huge": "more bytes than the core",
	}
	for _, m := range c.Modules() {
		if problem := want[m.Path]; !strings.Contains(m.Problem, problem) || (m.Object == nil) != (problem != "") {
			t.Errorf("%s: problem %q, expected %q", m.Path, m.Problem, problem)
		}
		delete(want, m.Path)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// TestSecondCore reads the core of devices that is given, or that lies beside the core under
// the name that it has there and is of its process.
func TestSecondCore(t *testing.T) {
	second := func(address uint64, change func(b *builder)) []byte {
		b := little64()
		b.machine = elf.EM_AMDGPU
		b.parts = []part{
			{typ: elf.PT_NOTE, data: b.note(nil, "DEV", 33, []byte("state"))},
			{typ: elf.PT_LOAD, flags: elf.PF_R, address: address, data: []byte("of devices")},
		}
		if change != nil {
			change(b)
		}
		return b.core()
	}
	host := devicesCore(false)
	host.parts = append(host.parts, part{typ: elf.PT_LOAD, flags: elf.PF_R, address: 0x20000, size: 0x1000})
	for _, x := range []struct {
		what    string
		name    string // beside the core; "": it is given
		bytes   []byte
		want    string // of the problems
		threads int
	}{
		{"given", "", second(0x20000, nil), "", 3},
		{"given, of another process", "", second(0x50000, nil), "may be of another one", 3},
		{"given, a core of a process", "", devicesCore(true).core(), "machine EM_X86_64", 2},
		{"given, of another byte order", "", second(0x20000, func(b *builder) { b.numbers = big32().numbers }), "byte order", 2},
		{"given, no core", "", []byte("no core"), "given as the core of other processors", 2},
		{"by the core's name", "core.gpu", second(0x20000, nil), "", 3},
		{"by the core's name, of another process", "core.gpu", second(0x50000, nil), "--gpu-core uses it", 2},
		{"by the core's name, no core", "core.gpu", []byte("no core"), "", 2},
		{"by the core's name, a core of a process", "core.gpu", devicesCore(true).core(), "", 2},
		{"another name", "gpucore.999", second(0x20000, nil), "", 2},
	} {
		dir := t.TempDir()
		r := &noteReader{answer: sdk.OpenTargetAnswer{Kind: "k", Threads: []sdk.TargetThread{{ID: "w1"}}}}
		r.asked = func(e sdk.Engine, _ *sdk.OpenTargetRequest) {
			buf := make([]byte, 10)
			if _, err := e.ReadMemory(t.Context(), sdk.MemoryRange{Address: 0x20000}, buf); x.want == "" && string(buf) != "of devices" {
				t.Errorf("%s: memory %q, %v", x.what, buf, err)
			}
		}
		options, path, name := r.options(), filepath.Join(dir, "core"), x.name
		if name == "" {
			name = "given"
			options.Devices = filepath.Join(dir, name)
		}
		if err := errors.Join(os.WriteFile(path, host.core(), 0o600), os.WriteFile(filepath.Join(dir, name), x.bytes, 0o600)); err != nil {
			t.Fatal(err)
		}
		c, err := Open(path, options)
		if err != nil {
			t.Fatal(err)
		}
		problems := strings.Join(c.Info().Problems, "\n")
		if len(c.Threads()) != x.threads || !strings.Contains(problems, x.want) {
			t.Errorf("%s: %d threads, expected %d; problems %s", x.what, len(c.Threads()), x.threads, problems)
		}
		c.ReleasePages()
		c.Close()
	}
}

// FuzzDevices opens cores whose notes a plugin answers for with anything that is valid.
func FuzzDevices(f *testing.F) {
	b := devicesCore(true)
	image := (&builder{numbers: little64().numbers, typ: elf.ET_DYN, machine: elf.EM_AMDGPU}).core()
	b.parts = append(b.parts, part{typ: elf.PT_LOAD, flags: elf.PF_R, address: 0x8000, data: image})
	core := b.core()
	f.Add(core, []byte("\x01\x02\x03"), uint64(0x8000), uint64(64), uint64(0x1000))
	f.Add(core, []byte{0, 7, 1, 9, 2, 200, 3, 4}, ^uint64(0), uint64(1<<40), uint64(0x8000))
	f.Fuzz(func(t *testing.T, core, program []byte, address, size, bias uint64) {
		r := &noteReader{answer: anyAnswer(program, address, size, bias)}
		c, err := opened(core, r.options())
		if err != nil {
			return
		}
		defer c.Close()
		ids := map[uint64]bool{}
		for i, th := range c.Threads() {
			if th.Handle != uint64(i) || ids[th.Handle] {
				t.Fatalf("thread %d has handle %d", i, th.Handle)
			}
			ids[th.Handle] = true
			_, _ = c.ReadScoped(6, th, address, make([]byte, 64))
			_, _ = c.ReadScoped(6, th, bias, make([]byte, 64))
		}
		for _, m := range c.Modules() {
			_, _ = m.Contains(address)
			if m.Object == nil && m.Problem == "" {
				t.Fatalf("module %s has no object, and nothing is said", m.Path)
			}
		}
		_, _ = c.ReadMemory(0, address, make([]byte, 64))
		_, _ = c.Mapped(address)
	})
}

// anyAnswer makes an answer of bytes: each pair is a kind of thing and what is special about it.
func anyAnswer(program []byte, address, size, bias uint64) (a sdk.OpenTargetAnswer) {
	a.Kind = "k"
	for ; len(program) >= 2 && len(a.Threads)+len(a.Objects) < 64; program = program[2:] {
		id := fmt.Sprint(program[1] % 16)
		switch program[0] % 4 {
		case 0:
			a.Threads = append(a.Threads, sdk.TargetThread{
				ID: id, Lanes: uint32(program[1]), Wave: sdk.Wave{Dispatch: id},
				Memory: []sdk.SpaceMemory{{Space: 6, Start: bias, Size: min(size, ^uint64(0)-max(bias, address)), Address: address}},
				Saved:  []sdk.SavedRegisters{{First: uint32(program[1]), Count: uint32(min(size, 1<<10)), Address: address}}, //nolint:gosec // bounded
			})
		case 1:
			a.Objects = append(a.Objects, sdk.TargetObject{URI: id, MemoryAddress: address, Size: size, Bias: bias})
		case 2:
			a.Objects = append(a.Objects, sdk.TargetObject{URI: id, Path: "/dev/null", Offset: address, Size: size, Bias: bias + uint64(program[1])})
		case 3:
			a.Dispatches = append(a.Dispatches, sdk.TargetDispatch{ID: id, Signal: address})
			a.Problems = append(a.Problems, id)
		}
	}
	return a
}
