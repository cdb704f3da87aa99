// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// This file compares symbol files of programs of macOS with what dump_syms in Rust writes, which reads Mach-O files
// anywhere.

const rustDumpSyms = "dump_syms@2.3.9"

// rustTool returns the path of dump_syms, which UNWINDD_PEER_DUMP_SYMS names, or which cargo makes.
func rustTool() (string, error) {
	if set := os.Getenv("UNWINDD_PEER_DUMP_SYMS"); set != "" {
		return set, nil
	}
	dir, err := cost.Kept(rustKept(), func(dir string) error {
		home, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		path := os.Getenv("PATH") + ":" + filepath.Join(home, ".cargo", "bin") // rustup puts cargo there
		return cost.Run(dir, "env", "PATH="+path, "cargo", "install", "--quiet", "--root", ".", rustDumpSyms, "--no-default-features", "--features", "cli")
	})
	return filepath.Join(dir, "bin", "dump_syms"), err
}

// rustKept is the name of the folder that has it.
func rustKept() string { return strings.ReplaceAll(rustDumpSyms, "@", "-") }

// macProgram is a program of macOS. Its dSYM is beside it; "": none is.
type macProgram struct{ path, arch, dSYM string }

// macOptions are the compiler's options of the programs that are made of each source.
var macOptions = [][]string{
	{"-O0"}, {"-O1"}, {"-O2"}, {"-O3"}, {"-Os"}, {"-Oz"}, {"-O0", "-fomit-frame-pointer"}, {"-O2", "-fomit-frame-pointer"},
}

const goProgram = `package main

import "fmt"

func main() { fmt.Println("macOS") }
`

// macPrograms makes programs of C and of C++ with exceptions, and programs of Go. There is a universal file, too.
func (p *peer) macPrograms() (list []macProgram, err error) {
	sources, err := filepath.Abs("../../engine/internal/macho/testdata")
	if err != nil {
		return nil, err
	}
	for _, arch := range []string{"arm64", "x86_64"} {
		for i, options := range macOptions {
			for compiler, source := range map[string]string{"clang-22": "frames.c", "clang++-22": "throws.cpp"} {
				made, err := p.macProgram(fmt.Sprintf("%s-%d-%s", strings.TrimRight(source, ".cp"), i, arch), arch, filepath.Join(sources, source), append([]string{compiler}, options...))
				if err != nil {
					return nil, err
				}
				list = append(list, made)
			}
		}
		goArch := map[string]string{"arm64": "arm64", "x86_64": "amd64"}[arch]
		path := filepath.Join(p.dir, "go-"+arch)
		if err := os.WriteFile(path+".go", []byte(goProgram), 0o600); err != nil {
			return nil, err
		}
		if err := cost.Run(p.dir, "env", "GOOS=darwin", "GOARCH="+goArch, "CGO_ENABLED=0", "go", "build", "-o", path, path+".go"); err != nil {
			return nil, err
		}
		universal, err := filepath.Abs("../../engine/symbolize/testdata/macos/app")
		if err != nil {
			return nil, err
		}
		list = append(list, macProgram{path, arch, ""}, macProgram{universal, arch, filepath.Join(universal+".dSYM", dSYMPath, "app")})
	}
	return list, nil
}

const dSYMPath = "Contents/Resources/DWARF"

// macProgram makes a program of a source.
func (p *peer) macProgram(name, arch, source string, compile []string) (m macProgram, err error) {
	m = macProgram{filepath.Join(p.dir, name), arch, filepath.Join(p.dir, name+".dSYM", dSYMPath, name)}
	for _, command := range [][]string{
		append(compile, "-target", arch+"-apple-macos13", "-g", "-w", "-c", source, "-o", name+".o"),
		{"ld64.lld-22", "-arch", arch, "-platform_version", "macos", "13.0", "13.0", "-undefined", "dynamic_lookup", "-o", name, name + ".o"},
		{"dsymutil-22", name},
	} {
		if err := cost.Run(p.dir, command[0], command[1:]...); err != nil {
			return m, err
		}
	}
	return m, nil
}

// macOS compares what the two write of a program.
func (p *peer) macOS(m macProgram) error {
	ours, err := symbols(p.unwindd, "symbols", "--in-process", m.path+":"+m.arch)
	if err != nil {
		return err
	}
	args := []string{"--inlines", "--arch", m.arch, "-o", "-", m.path}
	if m.dSYM != "" {
		args = append(args, m.dSYM)
	}
	theirs, err := symbols(p.rust, args...)
	if err != nil {
		return err
	}
	if want := strings.Replace(theirs.module, "Mac ", "mac ", 1); ours.module != want { // Breakpad's writes "mac"
		return fmt.Errorf("MODULE %s; dump_syms %s", ours.module, theirs.module)
	}
	calls, err := callsOf(m)
	if err != nil {
		return err
	}
	p.macAll.compare(filepath.Base(m.path)+":"+m.arch, ours, theirs, calls)
	return nil
}

// callsOf are the addresses of the last bytes of the calls of a program, from its beginning on.
func callsOf(m macProgram) (list []uint64, err error) {
	out, err := exec.Command("llvm-objdump-22", "--macho", "--arch="+m.arch, "-d", "--no-show-raw-insn", m.path).Output()
	if err != nil {
		return nil, err
	}
	isCall := false
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		digits, text, _ := strings.Cut(strings.TrimSpace(s.Text()), ":")
		address, err := strconv.ParseUint(digits, 16, 64)
		if words := strings.Fields(text); err == nil && len(words) > 0 {
			if isCall {
				list = append(list, address-1-textBase)
			}
			isCall = strings.HasPrefix(words[0], "bl") && words[0] != "bls" || strings.HasPrefix(words[0], "call")
		}
	}
	return list, nil
}

// textBase is where the linker has programs begin.
const textBase = 1 << 32

// macComparison counts the records of two symbol files of the same programs of macOS.
type macComparison struct{ functions, lines, publics, calls, others tally }

func (c *macComparison) tallies() []*tally {
	c.functions.title, c.lines.title, c.publics.title = "macOS: FUNC", "macOS: lines", "macOS: PUBLIC"
	c.calls.title, c.others.title = "macOS: STACK CFI at calls", "macOS: STACK CFI at other addresses"
	return []*tally{&c.functions, &c.lines, &c.publics, &c.calls, &c.others}
}

func (c *macComparison) compare(file string, ours, theirs *records, calls []uint64) {
	for at, want := range theirs.functions {
		c.function(file, ours.functions[at], want)
	}
	for at, got := range ours.functions {
		if theirs.functions[at] == nil {
			c.functions.add(c.onlyOurs(theirs, got), func() string { return fmt.Sprintf("%s %#x-%#x %s", file, got.start, got.end, got.name) })
		}
	}
	c.public(file, ours, theirs)
	a, b := ours.stretches(), theirs.stretches()
	isCall := map[uint64]bool{}
	for _, at := range calls {
		isCall[at] = true
	}
	if len(theirs.cfi) == 0 && len(ours.cfi) > 0 {
		c.others.add(known("dump_syms has no rules: it does not read the packed sections of Go"), func() string { return file })
		return
	}
	for _, f := range ours.functions {
		for at := f.start; at < f.end; at++ {
			t := &c.others
			if isCall[at] {
				t = &c.calls
			}
			got, want := a.at(at), b.at(at)
			t.add(macRules(got, want, isCall[at]), func() string { return fmt.Sprintf("%s %#x %s: %v\n      dump_syms %v", file, at, f.name, got, want) })
		}
	}
}

// onlyOurs is the class of a function that dump_syms lacks.
func (c *macComparison) onlyOurs(theirs *records, f *function) class {
	if _, isPublic := theirs.publics[f.start]; isPublic {
		return known("a PUBLIC record of dump_syms")
	}
	return unknown("only we have it")
}

func (c *macComparison) function(file string, got, want *function) {
	text := func() string { return describePair(file, got, want) }
	switch {
	case got == nil:
		c.functions.add(unknown("only dump_syms has it"), text)
		return
	case got.end != want.end:
		c.functions.add(unknown("another end"), text)
	case !got.multiple && want.multiple:
		c.functions.add(known("m: dump_syms has the function of the dSYM and the symbol of the program"), text)
	case strings.HasPrefix(want.name, "{virtual override thunk") && strings.Contains(got.name, "virtual thunk to "):
		c.functions.add(known("a thunk is called as LLVM's tools call it"), text)
	default:
		c.functions.add(nameClass(got.name, want.name), text)
	}
	for at := want.start; at < min(want.end, got.end); at++ {
		g, w := got.at(at), want.at(at)
		var kind class
		if a, b := chainText(got, g, at), chainText(want, w, at); a != b {
			kind = unknown("another line")
		}
		c.lines.add(kind, func() string {
			return fmt.Sprintf("%s %#x: %s\n      dump_syms %s", file, at, chainText(got, g, at), chainText(want, w, at))
		})
	}
}

// chainText is the line at an address and the calls that were inlined there.
func chainText(f *function, l *line, address uint64) string {
	s := ""
	for _, c := range f.chain(address) {
		s += fmt.Sprintf("%s called at %s:%d, ", plain(c.name), filepath.Base(c.file), c.line)
	}
	if l != nil {
		s += fmt.Sprintf("%s:%d", filepath.Base(l.file), l.number)
	}
	return s
}

func (c *macComparison) public(file string, ours, theirs *records) {
	covered := ours.covered()
	all := maps.Clone(ours.publics)
	maps.Copy(all, theirs.publics)
	for at := range all {
		got, want := ours.publics[at], theirs.publics[at]
		var kind class
		switch {
		case got == want || plain(got) == plain(want):
		case got == "" && ours.functions[at] != nil:
			kind = known("a FUNC record: it has lines, or code of no symbol is behind it")
		case got == "" && covered(at):
			kind = known("inside of a FUNC record")
		case got == "" && want == "_mh_execute_header":
			kind = known("the header, which is no code")
		case got == "":
			kind = unknown("only dump_syms has it")
		case want == "":
			kind = unknown("only we have it")
		default:
			kind = unknown("another name")
		}
		c.publics.add(kind, func() string { return fmt.Sprintf("%s %#x: %s / %s", file, at, got, want) })
	}
}

// stretch is a range of code with the same rules.
type stretch struct {
	start uint64
	rules rules // nil: none
}

type stretches []stretch

// stretches are the rules of all code, by address.
func (r *records) stretches() (list stretches) {
	ends := map[uint64]bool{}
	maps.Copy(ends, r.cfiEnds)
	for at := range r.cfi {
		ends[at] = true
	}
	var now rules
	for _, at := range slices.Sorted(maps.Keys(ends)) {
		now = r.rulesAt(at, now)
		list = append(list, stretch{at, now})
	}
	return list
}

func (s stretches) at(address uint64) rules {
	i, found := slices.BinarySearchFunc(s, address, func(x stretch, a uint64) int {
		if x.start <= a {
			return -1
		}
		return 1
	})
	if _ = found; i == 0 {
		return nil
	}
	return s[i-1].rules
}

// macRules says how rules at an address differ.
func macRules(got, want rules, isCall bool) class {
	got, want = got.short(), want.short()
	switch {
	case maps.Equal(got, want):
		return class{}
	case got == nil || want == nil:
		return unknown("only one has rules")
	case got[".cfa"] == want[".cfa"] && got[".ra"] == want[".ra"] && isPart(got, want):
		return known("saved registers that did not change yet, which are what they were in the caller")
	case maps.Equal(got.general(), want.general()):
		return known("registers of floating point: dump_syms names others than the DWARF of the code has")
	case got.stackSize() > maxImmediate && want.stackSize() < got.stackSize():
		return known("a size of the stack in an instruction (STACK_IND), which dump_syms does not read there")
	case isCall:
		return unknown("other rules")
	}
	return known("a prologue or an epilogue: dump_syms has the row of the body")
}

// short returns rules without additions of 0.
func (r rules) short() rules {
	short := maps.Clone(r)
	for name, text := range short {
		short[name] = strings.TrimSuffix(text, " 0 +")
	}
	return short
}

// general returns the rules of registers that have no numbers of floating point.
func (r rules) general() rules {
	general := maps.Clone(r)
	maps.DeleteFunc(general, func(name, _ string) bool { return name[0] == 'v' || name[0] == 'd' })
	return general
}

// maxImmediate is the largest size of the stack that an encoding for x86-64 has itself.
const maxImmediate = 255 * 8

// stackSize is the distance of the CFA from the stack pointer of x86-64; 0 where that has no part in it.
func (r rules) stackSize() int {
	text, _ := strings.CutPrefix(r[".cfa"], "$rsp ")
	return decimal(strings.TrimSuffix(text, " +"))
}

// isPart reports whether all rules are among others.
func isPart(list, all rules) bool {
	for name, text := range list {
		if all[name] != text {
			return false
		}
	}
	return true
}
