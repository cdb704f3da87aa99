// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// oneWave is a core whose every word a person can follow: a gfx900 wave of 4
// VGPRs, 16 SGPRs and 512 bytes of LDS.
func oneWave() *Core {
	m := MachineNamed("gfx900")
	w := Wave{PC: 0x1234_5678_9abc, Exec: 0xffff, VCC: 0x2_0000_0001, SGPRs: []uint32{7, 8, 9}, VGPRs: []uint32{0x11, 0x22},
		M0: 0x30, Mode: 0x40, Status: 0x50, Stopped: true, TrapID: 2, Exceptions: []Exception{MemViol},
		HasScratch: true, ScratchSlot: 3, ShaderEngine: 1, Scratch: []byte("private"), ID: 5}
	q := Queue{ID: 3, Packets: 8, ReadID: 14, WriteID: 17, Scratch: Scratch{Waves: 8, WaveBytes: 1024},
		Dispatches: []Dispatch{{ID: 15, Entry: 0x7000_0000, Group: [3]uint16{64, 1, 1}, Grid: [3]uint32{128, 1, 1}}},
		Groups:     []Group{{ID: [3]uint32{1, 0, 0}, LDS: []byte("shared"), Waves: []Wave{w}}}}
	return &Core{PID: 100, RuntimeVersion: 10, Agents: []Agent{{Machine: m, GPUID: 77, ShaderEngines: 2,
		TrapHandler: 0x5000, Queues: []Queue{q}}}}
}

// TestOneWave holds a core against numbers worked out by hand.
func TestOneWave(t *testing.T) {
	im := build(t, oneWave())
	_, memory := write(t, im)
	q := im.Queues()[0]
	header := memory.at(t, q.Save, 16)
	want := []uint32{0x1000 - 4*4, 4 * 4, 0x1000 + 1024 + 64 + 64 + 64 + 512 + 64, 1024 + 64 + 64 + 64 + 512 + 64}
	for i, v := range want {
		if got := binary.LittleEndian.Uint32(header[4*i:]); got != v {
			t.Errorf("header word %d is %#x, want %#x", i, got, v)
		}
	}
	// State: one block of VGPRs, one of SGPRs, one of LDS. Wave: slot 3, shader
	// engine 1, scratch, last, first.
	if state := memory.u32(t, q.Save+0x1000-8); state != 1<<31|1<<6|1<<9 {
		t.Errorf("the state word is %#x", state)
	}
	if wave := memory.u32(t, q.Save+0x1000-4); wave != 3|1<<11|1<<15|1<<16|1<<17 {
		t.Errorf("the wave word is %#x", wave)
	}
	end := q.Save + 0x1000 + uint64(want[3]) - 64
	ttmps := end - 512 - 64
	hwregs, sgprs := ttmps-64, ttmps-128
	checkWords(t, memory, []placed{
		{"LDS", end - 512, binary.LittleEndian.Uint32([]byte("shar"))},
		{"ttmp4", ttmps + 16, 5}, {"ttmp6", ttmps + 24, 1<<30 | 2<<25 | 7}, {"ttmp7", ttmps + 28, 0x5678_9ac0},
		{"ttmp8", ttmps + 32, 1}, {"ttmp11", ttmps + 44, 0x1234 << 7},
		{"m0", hwregs, 0x30}, {"pc", hwregs + 4, 0x5000}, {"exec", hwregs + 12, 0xffff},
		{"status", hwregs + 20, 0x50 | 1<<13 | 1<<18}, {"trapsts", hwregs + 24, 1 << 8}, {"mode", hwregs + 36, 0x40},
		{"s2", sgprs + 8, 9}, {"vcc_lo", sgprs + 56, 1}, {"vcc_hi", sgprs + 60, 2},
		{"v0 of lane 1", sgprs - 1024 + 4, 0x22},
		{"scratch", q.Scratch + (4+3)*1024, binary.LittleEndian.Uint32([]byte("priv"))},
		{"tmpring", q.Queue + 140, 8 | 1<<12},
		{"packet 15 of 8", q.Ring + 7*64 + 12, 128},
	})
	if entry := memory.u64(t, q.Ring+7*64+32); entry+memory.u64(t, entry+16) != 0x7000_0000 {
		t.Errorf("the kernel descriptor at %#x leads elsewhere", entry)
	}
}

type placed struct {
	name    string
	address uint64
	word    uint32
}

func checkWords(t *testing.T, memory memoryOf, list []placed) {
	t.Helper()
	for _, x := range list {
		if got := memory.u32(t, x.address); got != x.word {
			t.Errorf("%s is %#x, want %#x", x.name, got, x.word)
		}
	}
}

// TestGPUFile looks at what is odd about the runtime's own file.
func TestGPUFile(t *testing.T) {
	c := oneWave()
	c.Layout = Split
	im := build(t, c)
	files, memory := write(t, im)
	host, gpu := memory.files[0], memory.files[1]
	if host.Machine != elf.EM_X86_64 || gpu.Machine != emAMDGPU || gpu.OSABI != osabiHSA || gpu.Type != elf.ET_CORE {
		t.Errorf("host %v, GPU %v, OSABI %#x, type %v", host.Machine, gpu.Machine, byte(gpu.OSABI), gpu.Type)
	}
	for i, p := range gpu.Progs {
		switch {
		case i == 0 && (p.Type != elf.PT_NOTE || p.Align != 2 || p.Flags != 0):
			t.Errorf("the note's segment: %+v", p.ProgHeader)
		case i > 0 && (p.Align != 4 || p.Flags != elf.ProgFlag(elf.SHF_ALLOC|elf.SHF_WRITE) || p.Off%16 != 0):
			t.Errorf("segment %d: %+v", i, p.ProgHeader)
		}
	}
	note := files[1][gpu.Progs[0].Off:]
	if !bytes.HasPrefix(note[12:], []byte("AMDGPU\x00\x00\x01")) || note[0] != 7 || note[8] != 33 ||
		!bytes.Equal(note[20:][:len(im.Note())], im.Note()) {
		t.Errorf("the note begins with % x", note[:24])
	}
	c.Piped = true
	piped, _ := write(t, build(t, c))
	// Into a pipe nothing is padded: the bytes come up to 12 earlier than p_offset says.
	if n := len(files[1]) - len(piped[1]); n <= 0 || n > 12 {
		t.Errorf("piped, the file is %d bytes shorter", n)
	}
	c.Piped, c.SizeLimit = false, 4096
	limited, _ := write(t, build(t, c))
	if len(limited[1]) > 4096 || !bytes.Equal(limited[1], files[1][:len(limited[1])]) {
		t.Errorf("limited to 4096, the file has %d bytes", len(limited[1]))
	}
}

// TestHostIsKept joins a real host's core and a GPU: the host's notes and
// memory are there byte for byte.
func TestHostIsKept(t *testing.T) {
	host, err := os.ReadFile(filepath.Join("..", "..", "crash", "server.core"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := elf.NewFile(bytes.NewReader(host))
	if err != nil {
		t.Fatal(err)
	}
	for _, layout := range layouts {
		c := oneWave()
		c.Layout, c.Host = layout, host
		files, memory := write(t, build(t, c))
		after := memory.files[0]
		if layout == Split {
			c.RDebug = 0x1000
			unchanged, _ := write(t, build(t, c))
			if !bytes.Equal(unchanged[0], host) {
				t.Error("split: the host's core is changed though nothing was added")
			}
		}
		if after.Machine != before.Machine {
			t.Errorf("the machine is %v, was %v", after.Machine, before.Machine)
		}
		for _, p := range before.Progs {
			i := slices.IndexFunc(after.Progs, func(x *elf.Prog) bool {
				return x.Type == p.Type && x.Vaddr == p.Vaddr && x.Memsz == p.Memsz
			})
			if p.Type == elf.PT_NOTE {
				i = slices.IndexFunc(after.Progs, func(x *elf.Prog) bool { return x.Type == elf.PT_NOTE })
			}
			if i < 0 {
				t.Fatalf("layout %d: no segment at %#x", layout, p.Vaddr)
			}
			if x := after.Progs[i]; x.Align > 1 && (x.Off-x.Vaddr)%x.Align != 0 {
				t.Errorf("layout %d: the segment at %#x lies at %#x of the file, aligned to %#x", layout, x.Vaddr, x.Off, x.Align)
			}
			was, is := host[p.Off:][:p.Filesz], files[0][after.Progs[i].Off:]
			if !bytes.HasPrefix(is, was) {
				t.Errorf("layout %d: the segment at %#x is changed", layout, p.Vaddr)
			}
		}
	}
}

// TestCodeObjectIsLoaded puts an object's segments where its l_addr says.
func TestCodeObjectIsLoaded(t *testing.T) {
	image, err := os.ReadFile(filepath.Join("..", "..", "gpu-profile", "grade.co"))
	if err != nil {
		t.Fatal(err)
	}
	c := oneWave()
	c.CodeObjects = []CodeObject{{Image: image, Load: 0x7e00_0000_0000}, {URI: "file:///a%20b#offset=1&size=2", Unloaded: true}}
	im := build(t, c)
	_, memory := write(t, im)
	parsed, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parsed.Progs {
		if p.Type == elf.PT_LOAD && p.Filesz > 0 {
			if got := memory.at(t, 0x7e00_0000_0000+p.Vaddr, p.Filesz); !bytes.Equal(got, image[p.Off:][:p.Filesz]) {
				t.Errorf("the segment at %#x is not the file's", p.Vaddr)
			}
		}
	}
	link := memory.u64(t, im.RDebug()+8)
	for i, want := range im.CodeObjects() {
		name := memory.at(t, memory.u64(t, link+8), uint64(len(want.URI))+1)
		if string(name) != want.URI+"\x00" || want.Load != fmt.Sprintf("%#x", memory.u64(t, link)) {
			t.Errorf("object %d is %q at %#x, want %+v", i, name, memory.u64(t, link), want)
		}
		link = memory.u64(t, link+24)
	}
	if link != 0 || memory.u32(t, im.RDebug()) != 10 {
		t.Errorf("the list ends with %#x, the version is %d", link, memory.u32(t, im.RDebug()))
	}
}

// TestBuildRefuses has every contradiction that Build finds.
func TestBuildRefuses(t *testing.T) {
	wave := func(c *Core) *Wave { return &c.Agents[0].Queues[0].Groups[0].Waves[0] }
	for _, x := range []struct {
		change func(*Core)
		want   string
	}{
		{func(c *Core) { c.Agents[0].Queues[0].Packets = 6 }, "power of two"},
		{func(c *Core) { wave(c).PC = 1 << 50 }, "48 bits"},
		{func(c *Core) { wave(c).AGPRs = []uint32{1} }, "no accumulation"},
		{func(c *Core) { wave(c).ScratchSlot = 512 }, "scratch slot"},
		{func(c *Core) { wave(c).SGPRs = make([]uint32, 103) }, "SGPRs"},
		{func(c *Core) { wave(c).VGPRs = make([]uint32, 64*257) }, "blocks of VGPRs"},
		{func(c *Core) { wave(c).Exceptions = []Exception{WaveEnd} }, "no bit"},
		{func(c *Core) { wave(c).Stopped = false }, "not stopped"},
		{func(c *Core) { wave(c).Scratch = make([]byte, 2000) }, "bytes of scratch"},
		{func(c *Core) { wave(c).NoTTMPs = true; c.RuntimeVersion = 9 }, "cannot say"},
		{func(c *Core) { c.Agents[0].Queues[0].Groups[0].Lanes = 32 }, "32 lanes"},
		{func(c *Core) { c.Agents[0].Queues[0].Groups[0].XCC = 1 }, "XCC"},
		{func(c *Core) { c.Agents[0].Queues[0].Groups[0].WholeLDS = true }, "no field"},
		{func(c *Core) { c.Agents[0].Queues[0].Groups[0].Cluster = [3]uint32{2, 1, 1} }, "no field"},
		{func(c *Core) { c.Memory = []Memory{{Address: gpuArena + 8, Data: []byte{1}}} }, "runs into"},
		{func(c *Core) { c.AgentEntrySize = 124 }, "multiples of 8"},
		{func(c *Core) { c.CodeObjects = []CodeObject{{Image: []byte("no ELF")}} }, "CodeObjects[0]"},
	} {
		c := oneWave()
		x.change(c)
		if _, err := c.Build(); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q is refused with %v", x.want, err)
		}
	}
}

// TestSpots puts lies over every spot: each is where it says, and nothing else changes.
func TestSpots(t *testing.T) {
	for i, m := range Machines() {
		im := build(t, Random(seeded(i), layouts[i%3], 12, m))
		core, gpu, err := im.Files()
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, f := range []*File{core, gpu} {
			if f == nil {
				continue
			}
			checkSpots(t, f, names)
		}
		for _, n := range []string{"ehdr.e_phnum", "phdr[0].p_filesz", "note.agent_size", "note.runtime.r_debug",
			"note.queue[0].ctx_save_restore_address", "r_debug.r_map", "queue[0].xcc[0].header.wave_state_size",
			"queue[0].amd_queue.read_dispatch_id", "queue[0].packet[0].kernel_object"} {
			if !names[n] {
				t.Errorf("%s: no spot %s", m.Name, n)
			}
		}
	}
}

func checkSpots(t *testing.T, f *File, names map[string]bool) {
	t.Helper()
	b, err := f.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Spots(b) {
		if name := s.Name; names[name] && !strings.HasPrefix(name, "ehdr") && !strings.HasPrefix(name, "phdr") {
			t.Errorf("%s is there twice", name)
		}
		names[s.Name] = true
		damaged := slices.Clone(b)
		s.Put(damaged, s.Value)
		if !bytes.Equal(damaged, b) {
			t.Errorf("%s has another value than %#x", s.Name, s.Value)
		}
		for _, lie := range s.Lies() {
			if lie == s.Value {
				t.Errorf("%s: the lie %#x is true", s.Name, lie)
			}
		}
	}
}

// TestManyWaves writes 100,000 waves: in seconds, with the memory of their
// descriptions alone.
func TestManyWaves(t *testing.T) {
	c := manyWaves("gfx942", 100_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	im := build(t, c)
	path := filepath.Join(t.TempDir(), "core")
	if _, err := im.WriteFiles(path); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
	t.Logf("%d MiB of file in %v, %d MiB allocated", info.Size()>>20, time.Since(start).Round(time.Millisecond), allocated)
	if allocated > 300 {
		t.Errorf("%d MiB were allocated", allocated)
	}
}

// manyWaves are n waves on 4 queues, in groups of 4, with few registers each.
func manyWaves(machine string, n int) *Core {
	r := rand.New(rand.NewPCG(1, 2))
	c := &Core{RuntimeVersion: 12, Agents: []Agent{{Machine: MachineNamed(machine), GPUID: 1}}}
	sgprs, vgprs := randomWords(r, 30), randomWords(r, 4*64)
	for id := range uint32(4) {
		q := Queue{ID: id, Packets: 64, WriteID: 1, Dispatches: []Dispatch{{Entry: 0x1000}}}
		for g := range n / 16 {
			group := Group{ID: [3]uint32{uint32(g), 0, 0}, Waves: make([]Wave, 4)}
			for i := range group.Waves {
				group.Waves[i] = Wave{PC: r.Uint64N(1<<40) &^ 3, Exec: r.Uint64(), SGPRs: sgprs, VGPRs: vgprs, Stopped: i == 0}
			}
			q.Groups = append(q.Groups, group)
		}
		c.Agents[0].Queues = append(c.Agents[0].Queues, q)
	}
	return c
}

// TestSameSeedSameCore keeps seeded cores reproducible.
func TestSameSeedSameCore(t *testing.T) {
	a, _ := write(t, build(t, Random(seeded(5), Split, 12, Machines()...)))
	b, _ := write(t, build(t, Random(seeded(5), Split, 12, Machines()...)))
	if !bytes.Equal(a[0], b[0]) || !bytes.Equal(a[1], b[1]) {
		t.Error("two cores of one seed differ")
	}
}

// TestSwizzle lays two lanes' dwords beside each other.
func TestSwizzle(t *testing.T) {
	if got := string(Swizzle([][]byte{[]byte("aaaabbbb"), []byte("AAAABBBB")})); got != "aaaaAAAAbbbbBBBB" {
		t.Errorf("two lanes lie as %s", got)
	}
	if Swizzle(nil) != nil {
		t.Error("no lanes have memory")
	}
}

// TestCluster places group (6, 3, 0) of clusters of (4, 2, 1): place (2, 1, 0) of cluster (1, 1, 0).
func TestCluster(t *testing.T) {
	c := oneWave()
	a := &c.Agents[0]
	a.Machine = MachineNamed("gfx1250")
	g := &a.Queues[0].Groups[0]
	g.ID, g.Cluster = [3]uint32{6, 3, 0}, [3]uint32{4, 2, 1}
	im := build(t, c)
	_, memory := write(t, im)
	q := im.Queues()[0]
	// LDS of 1024 bytes, 512 bytes of hardware registers, below them the trap temporaries.
	ttmps := q.Save + q.boundary + q.xccs[0].records - 1024 - 512 - 64
	checkWords(t, memory, []placed{
		{"ttmp6", ttmps + 24, 1<<30 | 2 | 1<<4 | 3<<12 | 1<<16}, {"ttmp7", ttmps + 28, 1}, {"ttmp9", ttmps + 36, 1},
		{"ttmp8", ttmps + 32, 1<<31 | 1<<30 | 7}, {"ttmp11[31:28]", ttmps + 44, 2 << 28},
	})
}
