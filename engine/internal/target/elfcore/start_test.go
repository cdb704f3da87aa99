// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
)

// started is a core of a process with a command line and an environment.
type started struct {
	*builder
	command, environment []string
	psargs               string
	auxv                 []uint64 // pairs of NT_AUXV behind AT_RANDOM
	change               func(stack []byte, argc, vector int)
	undumped             bool
}

// stackAt is where the memory of the stack begins.
const stackAt = 0x7ff0000

// bytes lays the stack out as the kernel does.
func (s *started) bytes() []byte {
	size := uint64(s.size())
	words := uint64(1 + len(s.command) + 1 + len(s.environment) + 1)
	vector := stackAt + 256 + words*size
	strings := vector + uint64(len(s.auxv)+4)*size + 16
	var text []byte
	stack := s.words(make([]byte, 256), uint64(len(s.command)))
	for _, list := range [][]string{s.command, s.environment} {
		for _, word := range list {
			stack = s.words(stack, strings+uint64(len(text)))
			text = append(append(text, word...), 0)
		}
		stack = s.words(stack, 0)
	}
	auxv := s.words(nil, append(slices.Clone(s.auxv), atRandom, strings-16, 0, 0)...)
	stack = append(append(append(stack, auxv...), make([]byte, 16)...), text...)
	if s.change != nil {
		s.change(stack, 256, int(vector-stackAt))
	}
	info := s.info(12, "server")
	copy(info[s.offset(48, 56):], s.psargs)
	var notes []byte
	notes = s.note(notes, coreOwner, ntPRSTATUS, s.status(12, 11, 0x100, stackAt))
	notes = s.note(notes, coreOwner, ntPRPSINFO, info)
	notes = s.note(notes, coreOwner, ntAUXV, auxv)
	memory := part{typ: elf.PT_LOAD, flags: elf.PF_R | elf.PF_W, address: stackAt, size: 0x10000, data: stack}
	if s.undumped {
		memory.data = nil
	}
	s.parts = []part{{typ: elf.PT_NOTE, data: notes}, memory}
	return s.core()
}

func TestCommandLineAndEnvironmentAreReadFromMemory(t *testing.T) {
	command := []string{"./server", "--name", "two words", "", strings.Repeat("x", 100)}
	whole := strings.Join(command, " ")
	environment := []string{"HOME=/", "RANK=3", "EMPTY="}
	vector := []uint64{atPageSize, 4096, atEntry, 0x401000, atBase, 0x40000}
	for _, c := range []struct {
		name        string
		s           started
		command     []string
		environment []string
		line        string
	}{
		{"all", started{psargs: whole[:79]}, command, environment, whole},
		{"a short command line", started{psargs: "./server"}, command, environment, "./server"},
		// The debugger that wrote the core knows of other words.
		{"another command line", started{psargs: strings.Repeat("y", 79)}, command, environment, strings.Repeat("y", 79)},
		{"a stack that is not in the core", started{psargs: whole[:79], undumped: true}, nil, nil, whole[:79]},
		{"a vector that is another one", started{psargs: whole[:79], change: func(stack []byte, _, vector int) { stack[vector+2], stack[vector+8], stack[vector+20] = 1, 1, 1 }}, nil, nil, whole[:79]},
		{"no NULL behind the variables", started{psargs: whole[:79], change: func(stack []byte, _, vector int) { stack[vector-1], stack[vector-4], stack[vector-8] = 1, 1, 1 }}, nil, nil, whole[:79]},
		{"another count of words", started{psargs: whole[:79], change: func(stack []byte, argc, _ int) {
			for i := range 8 {
				stack[argc+i] ^= 9
			}
		}}, nil, environment, whole[:79]},
	} {
		for _, b := range []*builder{little64(), big32()} {
			s := c.s
			s.builder, s.command, s.environment, s.auxv = b, command, environment, vector
			core := openBytes(t, b.numbers, s.bytes())
			got := core.Start()
			if c.name == "another count of words" && !b.is64 { // the first pointer is changed, too
				got.Command = nil
			}
			if !slices.Equal(got.Command, c.command) || !slices.Equal(got.Environment, c.environment) || got.Cgroup != "" {
				t.Errorf("%s, 64 bits %v: %q", c.name, b.is64, got)
			}
			if line := core.Info().Facts.Process.Command; line != c.line {
				t.Errorf("%s, 64 bits %v: %q, expected %q", c.name, b.is64, line, c.line)
			}
		}
	}
}

func TestVariablesThatCannotBeReadAreLeftOut(t *testing.T) {
	b := little64()
	s := started{builder: b, command: []string{"p"}, environment: []string{"A=1", "no variable", "B=2", "=C:", "D=4"}, auxv: []uint64{atPageSize, 4096}}
	s.change = func(stack []byte, _, vector int) {
		b.order.PutUint64(stack[vector-8*4:], 0x1234) // of B
	}
	if got := openBytes(t, b.numbers, s.bytes()).Start(); !slices.Equal(got.Environment, []string{"A=1", "D=4"}) || !slices.Equal(got.Command, []string{"p"}) {
		t.Errorf("%q", got)
	}
	s = started{builder: b, auxv: []uint64{atPageSize, 4096}}
	if got := openBytes(t, b.numbers, s.bytes()).Start(); got.Command != nil || got.Environment != nil {
		t.Errorf("%q of a process without words", got)
	}
}

// Of hostile counts no more is read than the bounds allow.
func TestStartsAreBounded(t *testing.T) {
	b := little64()
	word := "V=" + strings.Repeat("x", 1<<10)
	s := started{builder: b, command: []string{"p"}, environment: slices.Repeat([]string{word}, 40), auxv: []uint64{atPageSize, 4096}}
	s.change = func(stack []byte, argc, vector int) { // all are the first one
		for at := argc + 8*3; at < vector-8; at += 8 {
			copy(stack[at:at+8], stack[argc+8*3:])
		}
	}
	c := openBytes(t, b.numbers, s.bytes())
	if got := c.Start(); len(got.Environment) != 40 || got.Environment[39] != word {
		t.Errorf("%d variables", len(got.Environment))
	}
	budget := 100
	if _, ok := c.stringAt(stackAt+0x400, &budget); ok || budget != 100 {
		t.Errorf("a string beyond the budget was read, %d bytes are left", budget)
	}
}

func TestCoresOfOtherMachinesHaveTheirCommandLine(t *testing.T) {
	unknown := map[string]bool{
		"ppc":   true, // its _start saves the link register where argv[0] was
		"s390x": true, // NT_AUXV of this version of qemu has five entries, none of an address on the stack
	}
	names, err := filepath.Glob("testdata/machines/*.core.bz2")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	for _, name := range names {
		name = strings.TrimSuffix(filepath.Base(name), ".core.bz2")
		c, err := Open(unpackMachine(t, t.TempDir(), name), Options{Describe: noArchitecture, Finder: object.Finder{Sysroot: t.TempDir()}})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"./" + name}
		if unknown[name] {
			want = nil
		}
		if got := c.Start(); !slices.Equal(got.Command, want) || len(got.Environment) > 0 {
			t.Errorf("%s: %q", name, got)
		}
		c.Close()
	}
}

// TestStartIsWhatTheProgramWrote compares with programs of several compilers and machines that write their own words.
func TestStartIsWhatTheProgramWrote(t *testing.T) {
	oracle.All(t)
	for _, c := range []struct{ compiler, emulator, core string }{
		{"gcc", "", "core"},
		{"gcc -static", "", "core"},
		{"clang", "", "core"},
		{"musl-gcc -static", "", "core"},
		{"aarch64-linux-gnu-gcc -static", "qemu-aarch64", "qemu_*.core"},
		{"powerpc64-linux-gnu-gcc -static", "qemu-ppc64", "qemu_*.core"},
		{"powerpc64le-linux-gnu-gcc -static", "qemu-ppc64le", "qemu_*.core"},
		{"s390x-linux-gnu-gcc -static", "qemu-s390x", "qemu_*.core"},
	} {
		t.Run(c.compiler, func(t *testing.T) {
			compile := strings.Fields(c.compiler)
			oracle.Tools(t, compile[0])
			if c.emulator != "" {
				oracle.Tools(t, c.emulator)
			}
			dir := t.TempDir()
			exe := filepath.Join(dir, "start")
			oracle.Run(t, compile[0], append(compile[1:], "-o", exe, "testdata/start.c")...)
			words := []string{exe, "words", "variables", "two words", "", strings.Repeat("x", 200)}
			cmd := exec.Command("sh", append([]string{"-c", `ulimit -c unlimited; exec "$@"`, "sh"}, append(strings.Fields(c.emulator), words...)...)...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "RANK=3", "EMPTY=", "LONG="+strings.Repeat("y", 1<<16))
			_ = cmd.Run() // it crashes
			cores, _ := filepath.Glob(filepath.Join(dir, c.core))
			if len(cores) != 1 {
				oracle.Missing(t, "no core %s was written in %s: core_pattern must be core", c.core, dir)
			}
			core, err := Open(cores[0], Options{Describe: noArchitecture, Finder: object.Finder{Sysroot: t.TempDir()}})
			if err != nil {
				t.Fatal(err)
			}
			defer core.Close()
			got := core.Start()
			for file, list := range map[string][]string{"words": got.Command, "variables": got.Environment} {
				want, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				if have := strings.Join(list, "\x00") + "\x00"; have != string(want) {
					t.Errorf("%s: %.300q, expected %.300q", file, have, want)
				}
			}
			if line := core.Info().Facts.Process.Command; line != strings.Join(words, " ") {
				t.Errorf("command line %q", line)
			}
		})
	}
}
