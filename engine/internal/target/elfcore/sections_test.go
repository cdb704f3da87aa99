// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// madeSection is a section of a made core.
type madeSection struct {
	typ     uint32
	address uint64
	data    []byte
}

// sectionsCore writes a core of sections. An extended one has its number of sections and the
// index of their names in section header 0.
func sectionsCore(machine elf.Machine, isExtended bool, list ...madeSection) (core []byte, offsets []uint64) {
	le := binary.LittleEndian
	core = make([]byte, 64)
	copy(core, elf.ELFMAG)
	core[elf.EI_CLASS], core[elf.EI_DATA], core[elf.EI_VERSION], core[elf.EI_OSABI], core[elf.EI_ABIVERSION] = 2, 1, 1, 0x33, 7
	le.PutUint16(core[16:], uint16(elf.ET_CORE))
	le.PutUint16(core[18:], uint16(machine))
	headers := make([]byte, 64, 64*(1+len(list)))
	for _, s := range list {
		offsets = append(offsets, uint64(len(core)))
		h := make([]byte, 64)
		le.PutUint32(h[4:], s.typ)
		le.PutUint64(h[16:], s.address)
		le.PutUint64(h[24:], uint64(len(core)))
		le.PutUint64(h[32:], uint64(len(s.data)))
		headers = append(headers, h...)
		core = append(core, s.data...)
	}
	le.PutUint64(core[40:], uint64(len(core)))
	le.PutUint32(core[48:], 0x12345)
	le.PutUint16(core[58:], 64)
	le.PutUint16(core[60:], uint16(1+len(list)))
	le.PutUint16(core[62:], 1)
	if isExtended {
		le.PutUint64(headers[32:], uint64(1+len(list)))
		le.PutUint32(headers[40:], 2)
		le.PutUint16(core[60:], 0)
		le.PutUint16(core[62:], uint16(elf.SHN_XINDEX))
	}
	return append(core, headers...), offsets
}

// ofMachine opens cores of EM_CUDA by a reader.
func (r *noteReader) ofMachine() Options {
	return Options{ForFile: func(machine object.ELFMachine) (NoteReader, error) {
		if machine.Number != uint16(elf.EM_CUDA) {
			return nil, fmt.Errorf("%v: %w", machine, target.ErrNoArchitecture)
		}
		return r, nil
	}}
}

func TestHeadersOfACoreOfSections(t *testing.T) {
	for _, isExtended := range []bool{false, true} {
		var got *sdk.OpenTargetRequest
		r := &noteReader{asked: func(_ sdk.Engine, req *sdk.OpenTargetRequest) { got = req }, answer: sdk.OpenTargetAnswer{Kind: "made"}}
		core, _ := sectionsCore(elf.EM_CUDA, isExtended, madeSection{data: []byte("abc")}, madeSection{data: []byte("d")})
		c, err := opened(core, r.ofMachine())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		want := sdk.TargetFile{
			Machine: 190, OSABI: 0x33, ABIVersion: 7, Flags: 0x12345, Size: uint64(len(core)), SectionsOffset: 68, Sections: 3, SectionSize: 64, SectionNames: 1,
		}
		if isExtended {
			want.SectionNames = 2
		}
		if got == nil || got.File == nil || *got.File != want || len(got.Notes) > 0 {
			t.Errorf("the plugin is asked %+v, expected %+v", got, want)
		}
		if info := c.Info(); info.Kind != "made" || len(info.Problems) > 0 || info.Unread {
			t.Errorf("%q, problems %q, unread %v", info.Kind, info.Problems, info.Unread)
		}
	}
}

func TestStateInTheFileOfACoreOfSections(t *testing.T) {
	registers, stack, global := []byte("AAAABBBBCCCC"), []byte("stack of a lane "), []byte("global memory")
	core, at := sectionsCore(elf.EM_CUDA, true, madeSection{data: registers}, madeSection{data: stack}, madeSection{data: global})
	r := &noteReader{answer: sdk.OpenTargetAnswer{
		Kind: "made",
		Memory: []sdk.SpaceMemory{
			{Start: 0x7000, Size: uint64(len(global)), Address: at[2], Into: sdk.FileSpace},
			{Space: 4, Start: 0x10, Size: 4, Address: at[2] + 7, Into: sdk.FileSpace},
			{Space: 4, Start: 0x12, Size: 4, Address: at[2], Into: sdk.FileSpace},
			{Start: 0x9000, Size: 1 << 40, Address: uint64(len(core)) - 2, Into: sdk.FileSpace},
		},
		LaunchFunctions: []string{"launch"}, HostProcess: &sdk.HostProcess{PID: 4711, Time: 12},
		Threads: []sdk.TargetThread{{
			ID: "w0", Lanes: 4, Lead: 1, Callers: []uint64{0x44}, State: "exited", LauncherThread: "7", LaunchEvidence: trace.LaunchQueue,
			Saved:  []sdk.SavedRegisters{{First: 1, Count: 3, Address: at[0], Into: sdk.FileSpace}},
			Memory: []sdk.SpaceMemory{{Space: 5, Start: 0x100, Size: 16, Address: at[1], Into: sdk.FileSpace}},
		}},
	}}
	r.asked = func(e sdk.Engine, _ *sdk.OpenTargetRequest) {
		buf := make([]byte, 5)
		if n, err := e.ReadMemory(context.Background(), sdk.MemoryRange{Space: sdk.FileSpace, Address: at[1]}, buf); n != 5 || err != nil || string(buf) != "stack" {
			t.Errorf("the plugin reads %d bytes %q of the file, %v", n, buf, err)
		}
		n, err := e.ReadMemory(context.Background(), sdk.MemoryRange{Space: sdk.FileSpace, Address: uint64(len(core)) - 1}, buf)
		if n != 1 || !errors.Is(err, target.ErrNoMemory) {
			t.Errorf("the plugin reads %d bytes across the end of the file, %v", n, err)
		}
		if n, err := e.ReadMemory(context.Background(), sdk.MemoryRange{Space: sdk.FileSpace, Address: 1 << 63}, buf); n != 0 || err == nil {
			t.Errorf("the plugin reads %d bytes behind the file, %v", n, err)
		}
	}
	c, err := opened(core, r.ofMachine())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	th := c.Threads()[0]
	if th.Lead != 1 || len(th.Callers) != 1 || th.State != "exited" || th.LaunchedBy.LaunchFunctions[0] != "launch" {
		t.Errorf("the thread is %+v", th)
	}
	if host := c.Info().Devices.Host; host == nil || host.PID != 4711 {
		t.Errorf("the process is %+v", host)
	}
	if value, ok := target.ReadSaved(c, th, sdk.RegisterInfo{Number: 2, Bits: 32}); !ok || string(value) != "BBBB" {
		t.Errorf("register 2 is %q", value)
	}
	for _, tt := range []struct {
		space   locexpr.AddressSpace
		address uint64
		want    string
	}{
		{0, 0x7000, "global memory"}, {5, 0x109, "a lane"}, {4, 0x10, "memo"}, {4, 0x14, "ob"}, {0, 0x9000, string(core[len(core)-2:])},
	} {
		buf := make([]byte, len(tt.want))
		if n, err := c.ReadScoped(tt.space, th, tt.address, buf); err != nil || string(buf) != tt.want {
			t.Errorf("space %d at %#x: %d bytes, %q, %v; expected %q", tt.space, tt.address, n, buf, err, tt.want)
		}
	}
	if isMapped, _ := c.Mapped(0x7004); !isMapped {
		t.Error("global memory is not mapped")
	}
	if p := c.Info().Problems; len(p) != 1 || !strings.Contains(p[0], "memory in 1 places is lost, the first is 0x10000000000 bytes at address 0x9000") {
		t.Errorf("problems %q", p)
	}
}

func TestCodeInACoreOfSections(t *testing.T) {
	code := bytes.Repeat([]byte{7}, 32)
	// The image's program headers are of the file, its sections are where they were loaded.
	made := &builder{numbers: numbers{binary.LittleEndian, true}, typ: elf.ET_EXEC, machine: elf.EM_CUDA}
	made.parts = []part{{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_X, data: code}}
	image := made.core()
	headers := make([]byte, 64, 192)
	for i := range 2 {
		h := make([]byte, 64)
		binary.LittleEndian.PutUint32(h[4:], uint32(elf.SHT_PROGBITS))
		binary.LittleEndian.PutUint64(h[8:], uint64(elf.SHF_ALLOC|elf.SHF_EXECINSTR))
		binary.LittleEndian.PutUint64(h[16:], 0x7f0000001000+uint64(i)*0x1000)
		binary.LittleEndian.PutUint64(h[24:], uint64(bytes.Index(image, code)))
		binary.LittleEndian.PutUint64(h[32:], 32)
		headers = append(headers, h...)
	}
	binary.LittleEndian.PutUint64(image[40:], uint64(len(image)))
	binary.LittleEndian.PutUint16(image[58:], 64)
	binary.LittleEndian.PutUint16(image[60:], 3)
	image = append(image, headers...)
	core, at := sectionsCore(elf.EM_CUDA, false, madeSection{data: image}, madeSection{data: []byte("no image")})
	r := &noteReader{answer: sdk.OpenTargetAnswer{Kind: "made", Objects: []sdk.TargetObject{
		{URI: "module 0", Size: uint64(len(image)), MemoryAddress: at[0], Into: sdk.FileSpace},
		{URI: "module 1", Size: 8, MemoryAddress: at[1], Into: sdk.FileSpace},
		{URI: "module 2", Size: 1 << 50, MemoryAddress: at[1], Into: sdk.FileSpace},
	}}}
	c, err := opened(core, r.ofMachine())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m := c.Modules()
	if len(m) != 3 || m[0].Path != "module 0" || m[0].Object == nil || len(m[0].Segments) != 2 {
		t.Fatalf("modules %+v", m)
	}
	if address, ok := m[0].Contains(0x7f0000002010); !ok || address != 0x7f0000002010 {
		t.Errorf("code is at %#x, %v", address, ok)
	}
	buf := make([]byte, 16)
	if n, err := c.ReadMemory(0, 0x7f0000002010, buf); n != 16 || err != nil || !bytes.Equal(buf, code[:16]) {
		t.Errorf("code is %x, %v", buf[:n], err)
	}
	for i, want := range []string{1: "module 1", 2: "the images would have more bytes than the file"} {
		if i > 0 && !strings.Contains(m[i].Problem, want) {
			t.Errorf("module %d: problem %q, expected %q", i, m[i].Problem, want)
		}
	}
}

func TestCoresOfSectionsThatAreNotRead(t *testing.T) {
	good, _ := sectionsCore(elf.EM_CUDA, false, madeSection{data: []byte("abc")})
	change := func(at int, size int, value uint64) []byte {
		b := bytes.Clone(good)
		for i := range size {
			b[at+i] = byte(value >> (8 * i))
		}
		return b
	}
	other, _ := sectionsCore(elf.EM_PPC64, false)
	for name, tt := range map[string]struct {
		core []byte
		err  error
		want string
	}{
		"entries too small":   {change(58, 2, 63), nil, "offset 0x3a: section headers of 63 bytes, expected 64"},
		"offset behind":       {change(40, 8, 1<<40), nil, "the section headers at offset 0x10000000000 are past the end"},
		"too many":            {change(60, 2, 0xfe00), nil, "2 of 65024 are there"},
		"too many, extended":  {change(60, 2, 0), nil, ""},
		"an error":            {good, errors.New("broken"), "the sections are not read: broken"},
		"of another machine":  {other, nil, "no plugin here reads its sections"},
		"neither of the both": {change(40, 8, 0), nil, "no program headers"},
	} {
		r := &noteReader{err: tt.err}
		c, err := opened(tt.core, r.ofMachine())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p := strings.Join(c.Info().Problems, "\n"); !strings.Contains(p, tt.want) {
			t.Errorf("%s: problems %q, expected %q", name, p, tt.want)
		}
		c.Close()
	}
}

// sectionReader answers, for each section of a core, memory, an object, and a thread with registers
// and lanes there, without believing that any of it is in the file.
type sectionReader struct{ noteReader }

func (r *sectionReader) OpenTarget(ctx context.Context, e sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	f := req.File
	a := &sdk.OpenTargetAnswer{Kind: "made"}
	for i := range min(f.Sections, 64) {
		var h [64]byte
		if _, err := e.ReadMemory(ctx, sdk.MemoryRange{Space: sdk.FileSpace, Address: f.SectionsOffset + i*uint64(f.SectionSize)}, h[:]); err != nil {
			a.Problems = append(a.Problems, err.Error())
			continue
		}
		start, offset, size := binary.LittleEndian.Uint64(h[16:]), binary.LittleEndian.Uint64(h[24:]), binary.LittleEndian.Uint64(h[32:])
		a.Memory = append(a.Memory, sdk.SpaceMemory{Space: locexpr.AddressSpace(h[0] % 3), Start: start, Size: size, Address: offset, Into: sdk.FileSpace})
		a.Objects = append(a.Objects, sdk.TargetObject{URI: fmt.Sprint("object ", i), MemoryAddress: offset, Size: size, Into: sdk.FileSpace, Bias: start})
		saved := []sdk.SavedRegisters{{First: 1, Count: 3, Address: offset, Into: sdk.FileSpace}}
		a.Threads = append(a.Threads, sdk.TargetThread{
			ID: fmt.Sprint("w", i), Lanes: 2, Saved: saved,
			LaneStates: []sdk.LaneState{{Saved: saved}, {Lane: 1, Memory: []sdk.SpaceMemory{{Space: 5, Start: start, Size: size, Address: offset, Into: sdk.FileSpace}}}},
		})
	}
	return a, nil
}

// FuzzSections reads any bytes as a core of sections, and all that a plugin then places in it.
func FuzzSections(f *testing.F) {
	image := little64()
	image.typ = elf.ET_EXEC
	image.parts = []part{{typ: elf.PT_LOAD, flags: elf.PF_X, address: 0x1000, data: []byte("code")}}
	for _, isExtended := range []bool{false, true} {
		core, _ := sectionsCore(elf.EM_CUDA, isExtended, madeSection{address: 0x7000, data: []byte("state")}, madeSection{address: 0x7002, data: image.core()})
		f.Add(core)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &sectionReader{}
		c, err := opened(data, Options{ForFile: func(object.ELFMachine) (NoteReader, error) { return r, nil }})
		if err != nil {
			return
		}
		defer c.Close()
		if n := len(c.Info().Problems); n > maxProblems+1 {
			t.Errorf("%d problems", n)
		}
		buf := make([]byte, 100)
		for i := range c.memory.segments {
			s := &c.memory.segments[i]
			if i > 0 && s.start < c.memory.segments[i-1].start+c.memory.segments[i-1].size {
				t.Fatalf("segment %d overlaps the one before it", i)
			}
			c.ReadMemory(0, s.start-10, buf)
		}
		for _, th := range c.Threads() {
			for _, number := range []uint32{1, 3} {
				target.ReadSaved(c, th, sdk.RegisterInfo{Number: number, Bits: 32})
			}
			if own := target.OfLane(th, 1); own != nil {
				for _, m := range own.Memory {
					c.ReadScoped(m.Space, own, m.Start+m.Size-3, buf)
					c.ReadScoped(1, own, m.Start, buf)
				}
			}
		}
		for _, m := range c.Modules() {
			for _, s := range m.Segments {
				if s.Start+s.Size < s.Start {
					t.Errorf("%s: the segment at %#x wraps", m.Path, s.Start)
				}
				c.ReadMemory(0, s.Start, buf)
			}
		}
	})
}
