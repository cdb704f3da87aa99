// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/service/job"
)

// address is the flag with the address of a server.
func (s *served) address() []string {
	return []string{"--server", "unix:" + filepath.Join(s.dir, "unwindd.sock")}
}

// outcome is all that a command did: the file that it wrote in the place of OUT among its arguments, what it
// printed and said, and its status.
type outcome struct {
	file, printed, said string
	status              int
}

// runInto runs a command whose argument OUT is a new file.
func runInto(t *testing.T, args []string) (w outcome) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	args = slices.Clone(args)
	for i := range args {
		if args[i] == "OUT" {
			args[i] = out
		}
	}
	w.printed, w.said, w.status = unwindd(t, args...)
	b, _ := os.ReadFile(out)
	w.file = string(b)
	w.printed, w.said = strings.ReplaceAll(w.printed, out, "OUT"), strings.ReplaceAll(w.said, out, "OUT")
	return w
}

// compareCommand has a server and this process do the same, by one command line.
func (s *served) compareCommand(t *testing.T, args ...string) (local outcome) {
	t.Helper()
	want := runInto(t, args)
	got := runInto(t, append(slices.Clone(args), s.address()...))
	switch {
	case got.file != want.file:
		t.Errorf("%v: the file that it wrote: %s", args, firstDifference(got.file, want.file))
	case got.printed != want.printed:
		t.Errorf("%v: %s", args, firstDifference(got.printed, want.printed))
	case got.said != want.said || got.status != want.status:
		t.Errorf("%v: status %d, %q, expected %d, %q", args, got.status, got.said, want.status, want.said)
	}
	return want
}

// exampleTargets are targets of every kind that the repository has.
var exampleTargets = [][]string{
	{"crash/server.core"}, {"crash/server.dmp"}, {"mixed/mixed.snapshot"}, {"rocm-core/crash.core"}, {"cuda-core/crash.core"},
	{"cuda-core/core.2440", "--gpu-core", "../../examples/cuda-core/crash.core"}, {"python-gpu/train.snapshot"}, {"runtime-toy/toy.snapshot"}, {"gen/gen.snapshot"},
}

// exampleTarget is the path of a target with its flags.
func exampleTarget(words []string) []string {
	return append([]string{filepath.Join("../../examples", words[0])}, words[1:]...)
}

// TestServerMakesTheSameSnapshots has a server make a snapshot of every example: the file, and the summary
// that is printed, are equal to the ones that the command makes without a server.
func TestServerMakesTheSameSnapshots(t *testing.T) {
	s := serve(t)
	for _, words := range exampleTargets {
		for _, flags := range [][]string{nil, {"--files"}, {"--files", "--any-file", "--format", "json"}} {
			args := slices.Concat([]string{"snapshot", "-o", "OUT"}, exampleTarget(words), flags)
			if w := s.compareCommand(t, args...); w.status != exitDone || w.file == "" {
				t.Errorf("%v: status %d: %s", args, w.status, w.said)
			}
		}
	}
	s.compareCommand(t, "snapshot", "/nowhere", "-o", "OUT")
	s.compareCommand(t, "snapshot", serverCore, "-o", "OUT", "--exe", "/nowhere", "--sysroot", "/nowhere")
}

// TestServerComparesTheSame has a server walk targets for a comparison.
func TestServerComparesTheSame(t *testing.T) {
	s := serve(t)
	examples := func(names ...string) (list []string) {
		for _, name := range names {
			list = append(list, filepath.Join("../../examples", name))
		}
		return list
	}
	all := examples("crash/server.core", "crash/server.dmp", "mixed/mixed.snapshot", "rocm-core/crash.core", "python-gpu/train.snapshot")
	for _, c := range []struct {
		targets []string
		flags   []string
	}{
		{all, nil},
		{all, []string{"--format", "json", "--label", "kind=([a-z-]+)/[^/]*$"}},
		{all, []string{"--format", "part", "-j", "1", "-o", "OUT"}},
		{all, []string{"--crashed", "--format", "html", "-o", "OUT"}},
		{all, []string{"--signature"}},
		{all, []string{"--threads", "--format", "folded"}},
		{all[:1], nil},
		{examples("job/stacks"), []string{"--format", "markdown"}},
		{append(all, "/nowhere", "../../go.mod"), []string{"--fail-if-differ"}},
		{[]string{"../../go.mod"}, nil},
	} {
		s.compareCommand(t, slices.Concat([]string{"compare"}, c.targets, c.flags)...)
	}
}

// TestServerIsNotThereForOtherCommands says once that the server cannot be reached, and nothing about the
// targets.
func TestServerIsNotThereForOtherCommands(t *testing.T) {
	for _, args := range [][]string{
		{"snapshot", serverCore, "-o", "OUT"}, {"compare", serverCore, mixed}, {"profile", "../../examples/profile/perf.data"},
		{"symbolize", "--obj", filepath.Join(crashDir, "server"), "0x401100"},
	} {
		w := runInto(t, append(args, "--server", "unix:/nowhere"))
		if w.status != exitInput || strings.Count(w.said, "no server answers at unix:/nowhere") != 1 || strings.Contains(w.said, "no target could be read") || w.file+w.printed != "" {
			t.Errorf("%v: status %d, %q %q", args, w.status, w.said, w.printed)
		}
	}
}

// TestServerSymbolizesTheSame has a server answer questions of every kind about files of all kinds, in every manner:
// what is written and said is the same as without it. Stripped files have their debug files sent, too.
func TestServerSymbolizesTheSame(t *testing.T) {
	s := serve(t)
	crash, words := filepath.Join(crashDir, "server"), "../../examples/profile/words"
	lines := strings.Join([]string{
		"CODE " + crash + " 0x401100", "DATA " + crash + " 0x404060", "FRAME " + crash + " 0x401911", "BUILDID:00112233445566778899 0x1", "", "nothing", "/nowhere 0x1", words + " main", "../../examples/kernels/kernel.spv kern+12",
		"../../examples/gpu-profile/grade.co 0x1700", "../../go.mod 0x1", crash + " no_such_function", crash + " 0x401911",
	}, "\n") + "\n"
	for _, style := range []string{"llvm", "gnu", "json"} {
		for _, flags := range [][]string{
			nil, {"-p", "-a"}, {"-s", "--functions", "none"}, {"--relativenames", "--no-inlines"}, {"--no-demangle", "--functions", "short"},
			{"--print-source-context-lines", "3"}, {"--adjust-vma", "0x10"},
		} {
			args := slices.Concat([]string{"symbolize", "--output-style", style}, flags)
			s.compareCommand(t, slices.Concat(args, []string{"--obj", crash, "0x401100", "0x401911", "0x1", "content_length", "no_such_function"})...)
			want, wantSaid, _ := withStdin(t, strings.NewReader(lines), args...)
			got, said, _ := withStdin(t, strings.NewReader(lines), append(args, s.address()...)...)
			if got != want || said != wantSaid || strings.Count(got, "serve") < 2 {
				t.Errorf("%v: %s, %q, expected %q", args, firstDifference(got, want), said, wantSaid)
			}
		}
	}
	s.compareCommand(t, "symbolize", "--obj", "/nowhere", "0x1")
	s.compareCommand(t, "symbolize", "--obj", "../../go.mod", "--output-style", "json", "0x1")
	made := strip(t)
	dir := t.TempDir()
	put(t, dir, "server.debug", made.debug)
	put(t, dir, made.byID, made.debug)
	id := strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(made.byID, ".build-id/"), ".debug"), "/", "")
	fresh := serve(t)
	for _, style := range []string{"llvm", "gnu", "json"} {
		args := []string{"symbolize", "--debug-dir", dir, "--output-style", style}
		fresh.compareCommand(t, slices.Concat(args, []string{"--obj", made.exe, "0x401100", "0x401911"})...)
		fresh.compareCommand(t, slices.Concat(args, []string{"BUILDID:" + id + " 0x401911"})...)
		if w := runInto(t, slices.Concat([]string{"symbolize", "--output-style", style, "BUILDID:" + id + " 0x401911"}, fresh.address())); !strings.Contains(w.printed, "serve") {
			t.Errorf("%s: of a build ID that the server alone has: %s%s", style, w.printed, w.said)
		}
	}
}

// TestServerProfilesTheSame has a server make profiles in every format, with samples of accelerators and the files
// that name their code: what is written, and what is said of it, is the same as without it.
func TestServerProfilesTheSame(t *testing.T) {
	s := serve(t)
	recording, cpu, gpu := "../../examples/profile/perf.data", "../../examples/gpu-profile/cpu.data", "../../examples/gpu-profile/gpu.jsonl"
	for _, format := range job.ProfileFormats {
		if w := s.compareCommand(t, "profile", recording, "--format", format, "-o", "OUT"); w.status != exitDone {
			t.Errorf("%s: status %d: %s", format, w.status, w.said)
		}
	}
	for _, args := range [][]string{
		{recording, "--annotate", "main", "--exe", "../../examples/profile/words"},
		{recording, "--symbols=false", "--max-stack", "2"},
		{recording, "--event", "cpu-clock", "--focus", "insert", "--bottom-up"},
		{recording, "--event", "no-such-event"},
		{cpu, "--gpu", gpu, "--objects", "../../examples/gpu-profile/grade.co", "--format", "json"},
		{cpu, "--gpu", "../../examples/gpu-profile/gpu_results.json"},
		{"--gpu", gpu, "--format", "json"},
		{"/nowhere"},
		{serverCore},
		{recording, "--gpu", "../../go.mod"},
	} {
		s.compareCommand(t, append([]string{"profile"}, args...)...)
	}
	b, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	want, wantSaid, _ := withStdin(t, bytes.NewReader(b), "profile", "-", "--exe", "../../examples/profile/words")
	got, said, status := withStdin(t, bytes.NewReader(b), append([]string{"profile", "-", "--exe", "../../examples/profile/words"}, s.address()...)...)
	if got != want || said != wantSaid || status != exitDone {
		t.Errorf("standard input: status %d, %s, %q, expected %q", status, firstDifference(got, want), said, wantSaid)
	}
	for _, flags := range [][]string{{"--http", "localhost:0"}, {"--objects", "1"}} {
		_, said, status := unwindd(t, slices.Concat([]string{"profile", recording}, flags, s.address())...)
		if status != exitUsage || !strings.Contains(said, "--server '' asks none") {
			t.Errorf("%v: status %d, %s", flags, status, said)
		}
	}
}
