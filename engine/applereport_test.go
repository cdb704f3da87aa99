// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
)

// appleBuild is a program for macOS, with its debug information in a file of its own.
type appleBuild struct {
	exe, debugDir string
	uuid          string
	text          object.Segment // of its code
	codeStart     uint64
	codeSize      uint64
}

// buildApple builds the program of testdata/apple for an architecture.
func buildApple(t *testing.T, arch, level string) (b appleBuild) {
	t.Helper()
	source, err := filepath.Abs("testdata/apple/crash.cc")
	if err != nil {
		t.Fatal(err)
	}
	dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"clang++-22", "-target", arch + "-apple-macos13", "-g", level, "-fno-exceptions", "-c", source, "-o", "crash.o"},
		{"ld64.lld-22", "-arch", arch, "-platform_version", "macos", "13.0", "13.0", "-undefined", "dynamic_lookup", "crash.o", "-o", "crash"},
		{"dsymutil-22", "crash", "-o", "crash.dSYM"},
	}}.Make(t)
	b.exe, b.debugDir = filepath.Join(dir, "crash"), filepath.Join(dir, "crash.dSYM/Contents/Resources/DWARF")
	o, err := object.Open(b.exe)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	for _, s := range o.Segments() {
		if s.Executable() {
			b.text = s
		}
	}
	code := o.Section(".text")
	b.codeStart, b.codeSize = code.Address, code.Size
	b.uuid = fmt.Sprintf("%X", o.BuildID())
	return b
}

// appleBase is where images of the tests are loaded.
const appleBase = 0x104a2c000

// appleIPS writes a report as JSON whose threads have the frames of lists of offsets in the image. The first frame
// of each thread is exact.
func appleIPS(t *testing.T, b *appleBuild, cpu string, threads [][]uint64) string {
	t.Helper()
	type frame struct {
		Offset uint64 `json:"imageOffset"`
		Image  int    `json:"imageIndex"`
	}
	list := make([]map[string]any, len(threads))
	for i, offsets := range threads {
		frames := make([]frame, len(offsets))
		for k, offset := range offsets {
			frames[k].Offset = offset
		}
		list[i] = map[string]any{"id": 1000 + i, "frames": frames, "triggered": i == 0}
	}
	body, err := json.MarshalIndent(map[string]any{
		"pid": 77, "procName": "crash", "procPath": "/Applications/crash", "cpuType": cpu, "captureTime": "2024-05-06 07:08:09.1234 +0200",
		"osVersion":  map[string]string{"train": "macOS 13.1", "build": "22C65"},
		"exception":  map[string]any{"type": "EXC_BAD_ACCESS", "signal": "SIGSEGV", "subtype": "KERN_INVALID_ADDRESS at 0x0000000000000008", "codes": "0x0000000000000001, 0x0000000000000008"},
		"usedImages": []map[string]any{{"base": appleBase, "size": b.text.MemSize, "uuid": strings.ToLower(b.uuid), "path": "/Applications/crash", "name": "crash"}},
		"threads":    list, "faultingThread": 0,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return appleFile(t, "crash.ips", `{"app_name":"crash","bug_type":"309","os_version":"macOS 13.1 (22C65)","name":"crash"}`+"\n"+string(body)+"\n")
}

// appleText writes the report of appleIPS as text.
func appleText(t *testing.T, b *appleBuild, cpu string, threads [][]uint64) string {
	t.Helper()
	var s strings.Builder
	fmt.Fprintf(&s, "Process:               crash [77]\nPath:                  /Applications/crash\nIdentifier:            crash\nCode Type:             %s (Native)\n", cpu)
	s.WriteString("\nDate/Time:             2024-05-06 07:08:09.1234 +0200\nOS Version:            macOS 13.1 (22C65)\n\nCrashed Thread:        0\n\n")
	s.WriteString("Exception Type:        EXC_BAD_ACCESS (SIGSEGV)\nException Codes:       KERN_INVALID_ADDRESS at 0x0000000000000008\n\n")
	for i, offsets := range threads {
		crashed := ""
		if i == 0 {
			crashed = " Crashed"
		}
		fmt.Fprintf(&s, "Thread %d%s:\n", i, crashed)
		for k, offset := range offsets {
			fmt.Fprintf(&s, "%-4d%-30s\t0x%016x 0x%x + %d\n", k, "crash", appleBase+offset, appleBase, offset)
		}
		s.WriteString("\n")
	}
	fmt.Fprintf(&s, "Binary Images:\n       0x%x -        0x%x +crash (0) <%s> /Applications/crash\n", appleBase, appleBase+b.text.MemSize-1, b.uuid)
	return appleFile(t, "crash.crash", s.String())
}

func appleFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// llvmFrame is a function of llvm-symbolizer's JSON.
type llvmFrame struct {
	FunctionName, FileName string
	Line, Column           int
}

// llvmNames are the functions at addresses of a file by llvm-symbolizer.
func llvmNames(t *testing.T, file string, addresses []uint64) [][]llvmFrame {
	t.Helper()
	var input strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&input, "0x%x\n", a)
	}
	out := oracle.With{Input: input.String()}.Run(t, "llvm-symbolizer-22", "--obj="+file, "--output-style=JSON")
	var all [][]llvmFrame
	for line := range strings.Lines(out) {
		var one struct{ Symbol []llvmFrame }
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one.Symbol)
	}
	if len(all) != len(addresses) {
		t.Fatalf("%d answers to %d addresses", len(all), len(addresses))
	}
	return all
}

// Every address of the program's code is the PC of a frame, once exact and once as a return address: names, lines
// and inlined calls are those that llvm-symbolizer reads from the dSYM, from the report as JSON and as text.
func TestFramesOfAppleReportsHaveTheNamesOfTheirDSYM(t *testing.T) {
	oracle.All(t)
	for _, c := range []struct{ arch, cpu, name string }{{"arm64", "ARM-64", "aarch64"}, {"x86_64", "X86-64", "x86_64"}} {
		for _, level := range []string{"-O0", "-O1", "-O2", "-O3", "-Os"} {
			t.Run(c.arch+level, func(t *testing.T) {
				b := buildApple(t, c.arch, level)
				step, distance := uint64(1), uint64(1)
				if c.arch == "arm64" {
					step, distance = 4, 4
				}
				var threads [][]uint64
				var lookups []uint64
				for a := b.codeStart; a < b.codeStart+b.codeSize; a += step {
					offset := a - b.text.Address
					threads = append(threads, []uint64{offset, offset + distance})
					lookups = append(lookups, a, a)
				}
				want := llvmNames(t, filepath.Join(b.debugDir, "crash"), lookups)
				for _, file := range []string{appleIPS(t, &b, c.cpu, threads), appleText(t, &b, c.cpu, threads)} {
					sameAsLLVM(t, file, &b, want, len(threads))
				}
			})
		}
	}
}

// sameAsLLVM compares the frames of a report, of which two belong to each thread, with the answers of
// llvm-symbolizer.
func sameAsLLVM(t *testing.T, file string, b *appleBuild, want [][]llvmFrame, count int) {
	t.Helper()
	r := enginetest.Report(t, file, func(a *enginetest.Ask) { a.Engine.DebugDirs = []string{b.debugDir} })
	if len(r.Threads) != count {
		t.Fatalf("%s: %d threads, expected %d", file, len(r.Threads), count)
	}
	differ := 0
	for i := range r.Threads {
		th := &r.Threads[i]
		expected := append(append([]llvmFrame{}, want[2*i]...), want[2*i+1]...)
		got := make([]llvmFrame, len(th.Frames))
		for k := range th.Frames {
			f := &th.Frames[k]
			got[k] = llvmFrame{f.Function, f.File, f.Line, f.Column}
			if f.NameFrom != "" || f.FoundBy != "report" {
				t.Fatalf("%s: thread %d, frame %d: %+v", file, i, k, f)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(expected) {
			if differ++; differ < 5 {
				t.Errorf("%s: thread %d at %s:\n got %v\nwant %v", filepath.Base(file), i, th.Frames[0].PC, got, expected)
			}
		}
	}
	t.Logf("%s: %d frames of %d threads, %d threads differ", filepath.Base(file), 2*count, count, differ)
}

// appleNamed are the functions of a report's threads, with how they are known.
func appleNamed(r *report.Report) (list []string) {
	for i := range r.Threads {
		th := &r.Threads[i]
		for k := range th.Frames {
			f := &th.Frames[k]
			list = append(list, fmt.Sprintf("%s %v %s %s %s:%d %v %s %s", th.ID, th.Crashed, f.Function, f.FunctionOffset, f.File, f.Line, f.Inlined, f.FoundBy, f.NameFrom))
		}
	}
	return list
}

const appleReports = "internal/target/applereport/testdata/"

// What a report names itself is its own, and says so.
func TestAppleReportsKeepTheirNames(t *testing.T) {
	r := enginetest.Report(t, appleReports+"crash.ips", func(a *enginetest.Ask) { a.Engine.Sysroot = t.TempDir() })
	want := []string{
		"last-exception true __exceptionPreprocess 0xa4 :0 false report report",
		"last-exception true   :0 false report ",
		"0 true shapes::Walker::walk(shapes::Node const*, int) 0x78 :0 false report report",
		"0 true read  crash.cc:17 true report report",
		"0 true shapes::Walker::walk(shapes::Node const*, int) 0x28 crash.cc:46 false report report",
		"0 true crash 0x38 :0 false report report",
		"0 true main 0xc :0 false report report",
		"0 true start 0x938 :0 false report report",
		"1 false start_wqthread 0x0 :0 false report report",
	}
	if got := appleNamed(r); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.Target.Kind != "apple-report" || r.Target.Crash.Name != "EXC_BAD_ACCESS / KERN_INVALID_ADDRESS" || r.Target.Crash.Address != "0x8" || len(r.Target.Annotations) != 6 {
		t.Errorf("%+v", r.Target)
	}
	if s := enginetest.Signature(t, appleReports+"crash.ips", func(a *enginetest.Ask) { a.Engine.Sysroot = t.TempDir() }); s.Thread != "last-exception" || s.Frames[0] != "[terminate]" {
		t.Errorf("the signature is of the stack of the exception: %+v", s)
	}
	translated := enginetest.Report(t, appleReports+"translated.txt", func(a *enginetest.Ask) { a.Engine.Sysroot = t.TempDir() })
	if got := appleNamed(translated); !slices.Equal(got, want) {
		t.Errorf("the report as text with its JSON behind it:\n%s", strings.Join(got, "\n"))
	}
}

// A report has no memory that a snapshot could keep.
func TestAppleReportsAreNoSnapshots(t *testing.T) {
	target, err := enginetest.Open(t, appleReports+"crash.ips")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := target.Snapshot(t.Context(), engine.SnapshotOptions{}); err == nil || !strings.Contains(err.Error(), "has no memory that a snapshot could keep") {
		t.Errorf("%v", err)
	}
}

// Images that overlap, lie at the end of the address space or have no size are read without harm.
func TestAppleReportsWithBadImages(t *testing.T) {
	image := func(base, size uint64) string {
		return fmt.Sprintf(`{"base":%d,"size":%d,"uuid":"0c2c9f2c-3b52-3a75-9e58-00a1c1b0d7f2","path":"/a/b%d","arch":"arm64"}`, base, size, base)
	}
	text := `{"bug_type":"309"}` + "\n" + `{"cpuType":"ARM-64","threads":[{"frames":[{"imageOffset":16,"imageIndex":0},{"imageOffset":4096,"imageIndex":1},{"imageOffset":8,"imageIndex":2},{"imageOffset":8,"imageIndex":3},{"imageOffset":8,"imageIndex":9}]}],"usedImages":[` +
		strings.Join([]string{image(0x10000, 0x4000), image(0x12000, 0x4000), image(1<<64-0x1000, 0x4000), image(0x90000, 0)}, ",") + `]}`
	r := enginetest.Report(t, appleFile(t, "bad.ips", text), func(a *enginetest.Ask) { a.Engine.Sysroot = t.TempDir() })
	if n := len(r.Threads[0].Frames); n != 5 {
		t.Errorf("%d frames", n)
	}
	if p := strings.Join(r.Target.Problems, "\n"); !strings.Contains(p, "image /a/b73728 at 0x12000 overlaps /a/b65536: no frame is looked up in it") || !strings.Contains(p, "1 frames are in images that are not listed") {
		t.Errorf("problems: %s", p)
	}
}

// A dSYM that was given and has another UUID is said to have it.
func TestAppleReportsWithTheDSYMOfAnotherBuild(t *testing.T) {
	data, err := os.ReadFile("../examples/apple/notes.ips")
	if err != nil {
		t.Fatal(err)
	}
	path := appleFile(t, "other.ips", strings.ReplaceAll(string(data), "4c4c4476-", "4c4c4477-"))
	r := enginetest.Report(t, path, func(a *enginetest.Ask) {
		a.Engine.Sysroot, a.Engine.DebugDirs = t.TempDir(), []string{"../examples/apple/Notes.app.dSYM"}
	})
	i := slices.IndexFunc(r.Modules, func(m report.Module) bool { return strings.HasSuffix(m.Path, "/Notes") })
	if i < 0 || !strings.Contains(r.Modules[i].Problem, "build ID is 4c4c447655553144a123b5959d72fbad, expected 4c4c447755553144a123b5959d72fbad") {
		t.Errorf("%+v", r.Modules)
	}
	if len(r.Target.Hints) != 1 || !strings.Contains(r.Target.Hints[0].Text, "what was found is of another build") || !strings.Contains(r.Target.Hints[0].Text, "--debug-dir Notes.app.dSYM") {
		t.Errorf("%+v", r.Target.Hints)
	}
}
