// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"compress/bzip2"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// unpackMachine puts the core and the executable of a machine into a folder.
func unpackMachine(t *testing.T, dir, name string) (core string) {
	t.Helper()
	exe, err := os.ReadFile(filepath.Join("testdata/machines", name))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join("testdata/machines", name+".core.bz2"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(bzip2.NewReader(f))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, name, exe)
	writeFile(t, dir, name+".core", data)
	return filepath.Join(dir, name+".core")
}

func noArchitecture(machine object.ELFMachine) (*sdk.Description, error) {
	return nil, fmt.Errorf("%w for %s", target.ErrNoArchitecture, object.DescribeMachine(machine.Number))
}

// gdbPC asks gdb where the first thread of a core is; ok is false where gdb does
// not know.
func gdbPC(t *testing.T, core string) (pc uint64, ok bool) {
	t.Helper()
	cmd := exec.Command(oracle.Tool(t, "gdb-multiarch"), "-nx", "-batch", "-ex", "core "+core, "-ex", `printf "pc=%#lx\n", $pc`)
	cmd.Dir = t.TempDir() // gdb 13 dies of cores of n32, and leaves one of its own
	out, _ := cmd.CombinedOutput()
	m := regexp.MustCompile(`(?m)^pc=(?:0x)?([0-9a-f]+)$`).FindSubmatch(out)
	if m == nil {
		return 0, false
	}
	pc, err := strconv.ParseUint(string(m[1]), 16, 64)
	return pc, err == nil
}

// TestThreadsOfOtherMachines reads the cores of machines that no architecture is
// here for: which thread it is, its signal, where it is, and in which file.
func TestThreadsOfOtherMachines(t *testing.T) {
	oracle.Tools(t, "gdb-multiarch")
	// gdb does not find the registers of these.
	unknownToGDB := map[string]bool{"loongarch64": true, "mipsn32": true}
	arch := map[string]string{"mipsn32": "mips"}
	for _, name := range []string{
		"aarch64", "aarch64_be", "arm", "armeb", "loongarch64", "mips", "mipsel", "mips64", "mips64el", "mipsn32",
		"ppc", "ppc64", "ppc64le", "s390x", "i386",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := unpackMachine(t, dir, name)
			c, err := Open(path, Options{Describe: noArchitecture, Finder: object.Finder{Sysroot: t.TempDir(), Folders: []string{dir}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			want := name
			if arch[name] != "" {
				want = arch[name]
			}
			if len(c.Threads()) != 1 {
				t.Fatalf("%d threads", len(c.Threads()))
			}
			th := c.Threads()[0]
			if th.Arch != want || th.Name != name || !th.Crashed || th.Signal != 11 || th.Problem != "" ||
				!strings.Contains(th.Unread, "the registers of "+want+" cannot be read: no architecture plugin for ELF machine") {
				t.Errorf("%+v", th)
			}
			if p := c.Info().Problems; len(p) != 1 || !strings.Contains(p[0], "the process is of "+want+":") ||
				!strings.Contains(p[0], "unwindd-arch-"+want+" ") {
				t.Errorf("problems %q", p)
			}
			if !th.HasPC {
				t.Fatal("where the thread is is not known")
			}
			if pc, ok := gdbPC(t, path); ok != !unknownToGDB[name] || ok && pc != th.PC {
				t.Errorf("PC %#x, gdb has %#x (%v)", th.PC, pc, ok)
			}
			mods := c.Modules()
			if len(mods) == 0 || mods[0].Arch != want || mods[0].Object == nil {
				t.Fatalf("modules %+v", mods)
			}
			address, ok := mods[0].Contains(th.PC)
			if in := functionAt(t, filepath.Join(dir, name), address); !ok || in != "crash_here" {
				t.Errorf("PC %#x is in %q, expected crash_here", th.PC, in)
			}
		})
	}
}

// functionAt is the function of an executable at an address.
func functionAt(t *testing.T, path string, address uint64) string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && address-s.Value < s.Size {
			return s.Name
		}
	}
	return ""
}

// TestWherePRSTATUSHasThePC holds every layout against two tools: each word of
// the note's registers has another value, and the tool says which is the PC.
func TestWherePRSTATUSHasThePC(t *testing.T) {
	oracle.Tools(t, "gdb-multiarch", "eu-readelf")
	// Neither tool reads these; TestThreadsOfOtherMachines has cores of the first two.
	unread := map[statusKey]int{
		{elf.EM_LOONGARCH, true}: 480, {elf.EM_MIPS, false}: 440,
		{elf.EM_SPARC32PLUS, false}: 228, // as SPARC
		{elf.EM_ALPHA_STD, true}:    384, // as EM_ALPHA
	}
	for key, layouts := range statusLayouts {
		for _, l := range layouts {
			for _, order := range ordersOf(key.machine) {
				h := coreHeader{numbers: numbers{order, key.is64}, machine: uint16(key.machine)}
				data := make([]byte, l.size)
				word := max(l.bits+7, 32) / 8 / 4 * 4
				for i, at := 0, l.pid&^7+h.offset(48, 80); at+word <= l.size; i, at = i+1, at+word {
					if word == 8 {
						order.PutUint64(data[at:], 0x10000+uint64(i)*16)
					} else {
						order.PutUint32(data[at:], 0x10000+uint32(i)*16)
					}
				}
				if key.machine == elf.EM_68K {
					for i, at := 0, 70; at+4 <= l.size; i, at = i+1, at+4 {
						order.PutUint32(data[at:], 0x10000+uint32(i)*16)
					}
				}
				order.PutUint16(data[12:], 11)
				order.PutUint32(data[l.pid:], 77)
				b := builder{numbers: h.numbers, typ: elf.ET_CORE, machine: key.machine}
				b.parts = []part{{typ: elf.PT_NOTE, data: b.note(nil, coreOwner, ntPRSTATUS, data)}}
				path := filepath.Join(t.TempDir(), "core")
				if err := os.WriteFile(path, b.core(), 0o600); err != nil {
					t.Fatal(err)
				}
				c, err := Open(path, Options{Describe: noArchitecture})
				if err != nil {
					t.Fatal(err)
				}
				th := c.Threads()[0]
				name := fmt.Sprintf("%s of %d bytes", h.arch(), l.size)
				if th.ID != "77" || th.Signal != 11 || !th.HasPC {
					t.Errorf("%s: %+v", name, th)
				}
				pcs := map[string]uint64{}
				if pc, ok := gdbPC(t, path); ok {
					pcs["gdb"] = pc
				}
				if pc, ok := elfutilsPC(t, path); ok {
					pcs["eu-readelf"] = pc
				}
				for tool, pc := range pcs {
					if pc != th.PC {
						t.Errorf("%s: PC %#x, %s has %#x", name, th.PC, tool, pc)
					}
				}
				if len(pcs) == 0 && unread[key] != l.size {
					t.Errorf("%s: no tool reads it", name)
				}
				c.Close()
			}
		}
	}
}

// ordersOf are the byte orders that Linux runs on a machine with.
func ordersOf(machine elf.Machine) []binary.ByteOrder {
	switch machine {
	case elf.EM_PPC, elf.EM_S390, elf.EM_SPARC, elf.EM_SPARC32PLUS, elf.EM_SPARCV9, elf.EM_68K:
		return []binary.ByteOrder{binary.BigEndian}
	case elf.EM_ARM, elf.EM_AARCH64, elf.EM_PPC64, elf.EM_MIPS:
		return []binary.ByteOrder{binary.LittleEndian, binary.BigEndian}
	}
	return []binary.ByteOrder{binary.LittleEndian}
}

// elfutilsPC is what eu-readelf says that the PC in NT_PRSTATUS is.
func elfutilsPC(t *testing.T, core string) (pc uint64, ok bool) {
	t.Helper()
	out, _ := exec.Command(oracle.Tool(t, "eu-readelf"), "-n", core).Output()
	m := regexp.MustCompile(`\b(?:pc|nip|eip|rip|pswa):\s+0x([0-9a-f]+)`).FindSubmatch(out)
	if m == nil {
		return 0, false
	}
	pc, err := strconv.ParseUint(string(m[1]), 16, 64)
	return pc, err == nil
}

// TestStatusOfUnknownSize: a note of another size than the kernel writes is not
// guessed at, and nothing of it is read beyond its end.
func TestStatusOfUnknownSize(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		size    int
		problem string
	}{
		{elf.EM_AARCH64, 336, "NT_PRSTATUS at offset 0x78 has 336 bytes, expected 392, as those of aarch64 have"},
		{elf.EM_AARCH64, 40, "NT_PRSTATUS at offset 0x78 has 40 bytes, expected 392"},
		{elf.EM_IA_64, 1144, "the layout of NT_PRSTATUS of ia64 is not"},
	} {
		b := little64()
		b.machine = c.machine
		status := make([]byte, c.size)
		b.order.PutUint32(status[32:], 5)
		b.parts = []part{{typ: elf.PT_NOTE, data: b.note(b.note(nil, coreOwner, ntPRSTATUS, status), coreOwner, ntPRSTATUS, status)}}
		core := openBytes(t, b.numbers, b.core(), Options{Describe: noArchitecture})
		th := core.Threads()
		if len(th) != 2 || th[0].HasPC || th[0].ID != "5" || th[0].Unread == "" {
			t.Errorf("%v: %+v", c.machine, th)
		}
		if n := strings.Count(problemsOf(core), c.problem); n != 1 {
			t.Errorf("%q is said %d times in %q", c.problem, n, problemsOf(core))
		}
	}
}

// gpuNoteBytes is NT_AMDGPU_CORE_STATE with entries of zeros.
func gpuNoteBytes(version uint64, agents, queues uint32) []byte {
	order := binary.LittleEndian
	b := order.AppendUint64(nil, version)
	b = order.AppendUint32(b, 1)
	b = order.AppendUint32(b, 18)
	b = order.AppendUint64(b, 16)
	for _, n := range []uint32{agents, 120, queues, 64} {
		b = order.AppendUint32(b, n)
	}
	return append(b, make([]byte, 16+agents*120+queues*64)...)
}

func TestStateOfGraphicsProcessorsIsSaid(t *testing.T) {
	whole := gpuNoteBytes(1, 2, 1)
	huge := gpuNoteBytes(1, 0, 0)
	copy(huge[16:], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
	for name, test := range map[string]struct {
		machine elf.Machine
		note    []byte // nil: none
		says    string // of the problems; "": none
		kind    trace.Kind
	}{
		"in the core of a process": {elf.EM_X86_64, whole, "the state of AMD's graphics processors (2 agents, 1 queue), which no plugin here reads: no waves are shown; ROCgdb reads it", trace.ELFCore},
		"by itself":                {elf.EM_AMDGPU, whole, "(2 agents, 1 queue), which no plugin here reads: no waves are shown; ROCgdb reads it, with the core of the process", trace.ROCmCore},
		"cut":                      {elf.EM_X86_64, whole[:100], "(2 agents, 1 queue, but cut: 100 bytes)", trace.ELFCore},
		"cut within its header":    {elf.EM_X86_64, whole[:39], "(cut: 39 bytes, expected at least 40)", trace.ELFCore},
		"of another version":       {elf.EM_X86_64, gpuNoteBytes(2, 1, 1), "(version 2, expected 1)", trace.ELFCore},
		"of sizes that wrap":       {elf.EM_X86_64, huge, "but cut", trace.ELFCore},
		"a core without the note":  {elf.EM_AMDGPU, nil, "has no state of theirs that this version knows; ROCgdb", trace.ROCmCore},
		"of CUDA":                  {elf.EM_CUDA, nil, "the core is of NVIDIA's graphics processors, and has no state of theirs that this version knows; cuda-gdb", trace.ELFCore},
		"a process":                {elf.EM_X86_64, nil, "", trace.ELFCore},
	} {
		t.Run(name, func(t *testing.T) {
			b := little64()
			b.machine = test.machine
			var notes []byte
			if test.machine == elf.EM_X86_64 {
				notes = b.note(notes, coreOwner, ntPRSTATUS, b.status(1, 11, 0x100, 0))
			}
			if test.note != nil {
				notes = b.note(notes, gpuOwner, ntGPUCoreState, test.note)
			}
			b.parts = []part{{typ: elf.PT_NOTE, data: notes}, {typ: elf.PT_LOAD, address: 0x1000, data: make([]byte, 16)}}
			c := openBytes(t, b.numbers, b.core())
			info := c.Info()
			p := problemsOf(c)
			if info.Kind != test.kind || info.Unread != (test.says != "") || (p == "") != (test.says == "") || !strings.Contains(p, test.says) {
				t.Errorf("%s, unread %v: %s", info.Kind, info.Unread, p)
			}
			if test.machine != elf.EM_X86_64 && test.note != nil && strings.Contains(p, "\n") {
				t.Errorf("more is said than what it is: %s", p)
			}
		})
	}
}
