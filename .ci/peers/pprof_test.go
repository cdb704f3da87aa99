// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"debug/elf"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
)

const subject = "engine/symbolize/testdata/subject.cc"

// A C++ profile of addresses alone: pprof lists the source with what its
// llvm-symbolizer says.
func TestPprofListsSourceThroughUs(t *testing.T) {
	dir := t.TempDir()
	program, unwindd := filepath.Join(dir, "program"), filepath.Join(dir, "unwindd")
	for _, args := range [][]string{
		{"g++", "-O2", "-g", "-o", program, subject},
		{"go", "build", "-o", unwindd, "./cmd/unwindd"},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	theirs, err := exec.LookPath("llvm-symbolizer-22")
	if err != nil {
		t.Fatal(err)
	}
	samples := writeProfile(t, program, filepath.Join(dir, "profile"))
	t.Setenv("PATH", t.TempDir()) // no other tool is found
	none, ours, llvm := listing(t, dir, ""), listing(t, dir, unwindd), listing(t, dir, theirs)
	if strings.Contains(none, "subject.cc") {
		t.Errorf("without a symbolizer pprof lists\n%s", none)
	}
	if ours != llvm {
		t.Errorf("with unwindd:\n%s\nwith llvm-symbolizer:\n%s", ours, llvm)
	}
	source, err := os.ReadFile(filepath.Join("../..", subject))
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for _, line := range strings.Split(string(source), "\n") {
		if line = strings.TrimSpace(line); len(line) > 8 && regexp.MustCompile(`(?m)^ +\d+ +\d+ +\d+:.*`+regexp.QuoteMeta(line)).MatchString(ours) {
			listed++
		}
	}
	if listed < 5 {
		t.Errorf("%d lines of the source with samples of their own are listed of %d samples:\n%s", listed, samples, ours)
	}
}

// writeProfile writes a profile with a sample at every fourth byte of the program's
// .text, loaded elsewhere than it was linked at.
func writeProfile(t *testing.T, program, path string) int {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const bias = 0x5555_5555_0000
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}}}
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_LOAD && segment.Flags&elf.PF_X != 0 {
			p.Mapping = []*profile.Mapping{{ID: 1, Start: bias + segment.Vaddr, Limit: bias + segment.Vaddr + segment.Memsz, Offset: segment.Off, File: program}}
		}
	}
	text := f.Section(".text")
	for a := text.Addr; a < text.Addr+text.Size; a += 4 {
		l := &profile.Location{ID: uint64(len(p.Location) + 1), Mapping: p.Mapping[0], Address: bias + a}
		p.Location = append(p.Location, l)
		p.Sample = append(p.Sample, &profile.Sample{Location: []*profile.Location{l}, Value: []int64{1}})
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := p.Write(out); err != nil {
		t.Fatal(err)
	}
	return len(p.Sample)
}

// listing is what pprof lists of the profile with a symbolizer; "" is none.
func listing(t *testing.T, dir, symbolizer string) string {
	t.Helper()
	tools, out := t.TempDir(), filepath.Join(t.TempDir(), "listing")
	if symbolizer != "" {
		if err := os.Symlink(symbolizer, filepath.Join(tools, "llvm-symbolizer")); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PPROF_TOOLS", tools)
	t.Setenv("PPROF_TMPDIR", tools)
	args := []string{"-list=.", "-output", out, filepath.Join(dir, "program"), filepath.Join(dir, "profile")}
	flags := &pprofFlags{FlagSet: flag.NewFlagSet("pprof", flag.ContinueOnError), args: args}
	if err := driver.PProf(&driver.Options{Flagset: flags}); err != nil && symbolizer != "" {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil && symbolizer != "" {
		t.Fatal(err)
	}
	return string(text)
}

// pprofFlags gives pprof a command line of its own.
type pprofFlags struct {
	*flag.FlagSet
	args []string
}

func (f *pprofFlags) StringList(name, value, usage string) *[]*string {
	return &[]*string{f.String(name, value, usage)}
}
func (f *pprofFlags) ExtraUsage() string   { return "" }
func (f *pprofFlags) AddExtraUsage(string) {}
func (f *pprofFlags) Parse(usage func()) []string {
	f.Usage = usage
	if err := f.FlagSet.Parse(f.args); err != nil {
		panic(err)
	}
	return f.Args()
}
