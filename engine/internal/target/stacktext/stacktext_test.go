// SPDX-License-Identifier: Apache-2.0

package stacktext

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
)

// lines are the stacks of a file, outermost first, with the sums of their weights.
func lines(f *stacktree.File) map[string]uint64 {
	sums := map[string]uint64{}
	for _, s := range f.Samples {
		t := f.Threads[s.Thread]
		text := fmt.Sprintf("%s %d/%d %s", t.Comm, t.PID, t.TID, f.Events[s.Event].Name)
		var frames []string
		for stack := s.Stack; stack != 0; stack = f.Stacks[stack].Caller {
			frames = append(frames, frameText(&f.Frames[f.Stacks[stack].Frame]))
		}
		slices.Reverse(frames)
		sums[text+" "+strings.Join(frames, ";")] += s.Weight
	}
	return sums
}

func frameText(f *stacktree.Frame) string {
	var names []string
	for _, s := range f.Symbols {
		name := s.Function
		if s.Line > 0 {
			name += fmt.Sprintf("@%s:%d", s.File, s.Line)
		}
		names = append(names, name)
	}
	slices.Reverse(names)
	text := strings.Join(names, ">")
	if len(names) == 0 {
		text = fmt.Sprintf("?%#x", f.Address)
	}
	if f.Object != "" {
		text += " in " + filepath.Base(f.Object)
	}
	if f.Kernel {
		text += " k"
	}
	if f.Device {
		text += " G"
	}
	return text
}

// The files of testdata are the output of perf 6.1 for every 60th sample of one recording, with
// different fields:
//
//	perf record -e cpu-clock -F 999 --call-graph dwarf,4096 ./prog
//	perf script [-F FIELDS]
//	perf script -G --show-mmap-events   (flat.txt)
func TestFieldsOfPerfScript(t *testing.T) {
	for name, want := range map[string]string{
		"default.txt": "prog -1/22976 cpu-clock _start in prog;__libc_start_main_impl;__libc_start_call_main in libc.so.6;main in prog;rand in libc.so.6;__random in libc.so.6 2002002",
		"pid.txt":     "prog 22976/22976 samples _start in prog;__libc_start_main_impl;__libc_start_call_main in libc.so.6;main in prog;rand in libc.so.6;__random in libc.so.6 2",
		"srcline.txt": "prog -1/22976 cpu-clock _start in prog;__libc_start_main_impl@libc-start.c:360;__libc_start_call_main@libc-start.c:58 in libc.so.6;main@p.c:9 in prog;rand@rand.c:27 in libc.so.6;__random@random.c:291 in libc.so.6 2",
		"bare.txt":    " -1/-1 samples _start;__libc_start_main_impl;__libc_start_call_main;main;rand;__random 2",
		"comm.txt":    "prog -1/-1 samples _start;__libc_start_main_impl;__libc_start_call_main;main;rand;__random 2",
		"flat.txt":    "prog -1/22976 cpu-clock __random in libc.so.6 1001001",
	} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if !IsScript(data, true) || !IsScript(data[:len(data)/2], false) || IsFolded(data, true) {
			t.Errorf("%s is not taken for what it is", name)
		}
		f, err := ReadScript(name, data)
		if err != nil {
			t.Fatal(err)
		}
		cut := strings.LastIndexByte(want, ' ')
		if got := lines(f); fmt.Sprint(got[want[:cut]]) != want[cut+1:] {
			t.Errorf("%s: not %s:\n%v", name, want, got)
		}
		samples := 11
		if name == "flat.txt" {
			samples = 10 // the others are of the records between them
		}
		if len(f.Samples) != samples || len(f.Problems) > 1 {
			t.Errorf("%s: %d samples, problems %q", name, len(f.Samples), f.Problems)
		}
		if name == "flat.txt" && (len(f.Mappings) == 0 || f.Mappings[0].Path != "/home/user/prog" || f.Mappings[0].Offset != 0x1000 || f.Mappings[0].PID != 22976) {
			t.Errorf("mappings %+v", f.Mappings)
		}
	}
}

// TestLinesOfPerfScript has the lines that other programs, versions and fields give.
func TestLinesOfPerfScript(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string]uint64
		problems   int
	}{
		{"names with spaces and digits", "my 2 app 77/78 [003] 5.000001: 10 cycles:u: \n\t       401000 f+0x1 (/a b/c (deleted))\n\n", map[string]uint64{"my 2 app 77/78 cycles:u f in c (deleted)": 10}, 0},
		{"templates and operators", "x 1 [000] 1.0: 3 cycles: \n\t       401000 std::function<void (int)>::operator()(int) const+0x1f (/x)\n", map[string]uint64{"x -1/1 cycles std::function<void (int)>::operator()(int) const in x": 3}, 0},
		{"the kernel", "x 1 [000] 1.0: 3 cycles: \n\tffffffff81000010 do_sys+0x10 ([kernel.kallsyms])\n\tffffffffc0000010 ext4_f+0x1 ([ext4])\n\t    7ffd00000010 [unknown] ([vdso])\n\t 401000 [unknown] (/x)\n",
			map[string]uint64{"x -1/1 cycles ?0x401000 in x;?0x7ffd00000010 in [vdso];ext4_f in [ext4] k;do_sys in [kernel.kallsyms] k": 3}, 0},
		{"a tracepoint", "x 1 [000] 1.0: sched:sched_switch: prev_comm=x prev_pid=1 ==> next_comm=y\n\t 401000 f+0x1 (/x)\n\nx 1 [000] 1.1: sched:sched_switch: prev_comm=x\n\n", map[string]uint64{"x -1/1 sched:sched_switch f in x": 1, "x -1/1 sched:sched_switch ": 1}, 1},
		{"no stack", "x 1 2.000000001: 7 cpu-clock:u:  401000 [unknown] (/x)\n", map[string]uint64{"x -1/1 cpu-clock:u ?0x401000 in x": 7}, 0},
		{"an offset of the object", "x 1 2.0: 7 cycles: \n\t    7f0000001000 g+0x3 (/lib/x.so+0x1000)\n", map[string]uint64{"x -1/1 cycles g in x.so": 7}, 0},
		{"functions named as numbers", "x 1 2.0: 7 cycles: \n\t add (/x)\n\t fade+0x1 (/x)\n", map[string]uint64{"x -1/1 cycles fade in x;add in x": 7}, 0},
		{"modes", "x 1 [001] U 2.0: 7 cycles: \n\t          401000 f (/x)\r\n", map[string]uint64{"x -1/1 cycles f in x": 7}, 0},
		{"spaces for tabulators", "x 1 [001] 2.0: 7 cycles: \n           401000 f (/x)\n           401001 g (/x)\n\n", map[string]uint64{"x -1/1 cycles g in x;f in x": 7}, 0},
		{"what is no line of it", "x 1 [001] 2.0: 7 cycles: \n\t          401000 f (/x)\n\nwhat may this line be?\n", map[string]uint64{"x -1/1 cycles f in x": 7}, 1},
	} {
		if !IsScript([]byte(c.text), true) {
			t.Errorf("%s: not taken for the text of perf script", c.name)
		}
		f, err := ReadScript("p", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, lines(f)); d != "" || len(f.Problems) != c.problems {
			t.Errorf("%s: problems %q (-want +got):\n%s", c.name, f.Problems, d)
		}
		if s := &f.Samples[0]; s.HasCPU != strings.Contains(c.text, "[00") || strings.Contains(c.text, "[003]") && s.CPU != 3 {
			t.Errorf("%s: processor %d, %v", c.name, s.CPU, s.HasCPU)
		}
	}
}

func TestFolded(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string]uint64
		problems   int
	}{
		{"names of threads", "java;main;f 3\njava;main 2\n", map[string]uint64{"java -1/-1 samples main;f": 3, "java -1/-1 samples main": 2}, 0},
		{"functions first", "main(int);f 3\nns::g;h 1\n", map[string]uint64{" -1/-1 samples main(int);f": 3, " -1/-1 samples ns::g;h": 1}, 0},
		{"marks", "a;b;c_[i];d_[i];read_[k];jitted_[j];gemm_[G] 4\n", map[string]uint64{"a -1/-1 samples b>c>d;read k;jitted;gemm G": 4}, 0},
		{"spaces and digits in names", "a b;operator new 12;f (x) 1 4\n", map[string]uint64{"a b -1/-1 samples operator new 12;f (x) 1": 4}, 0},
		{"addresses", "a;/lib/x.so+0x1234;[/lib/y.so+0xff];[unknown] 4\n", map[string]uint64{"a -1/-1 samples ?0x1234 in x.so;?0xff in y.so;?0x0": 4}, 0},
		{"fractions", "a;b 1.5\na;b 2\n", map[string]uint64{"a -1/-1 samples b": 4}, 1},
		{"lines that are none", "a;b 1\nnothing\na;c -1\na;c 1e999\n", map[string]uint64{"a -1/-1 samples b": 1}, 1},
	} {
		f, err := ReadFolded("p", []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(c.want, lines(f)); d != "" || len(f.Problems) != c.problems {
			t.Errorf("%s: problems %q (-want +got):\n%s", c.name, f.Problems, d)
		}
	}
	if f, err := ReadFolded("p", []byte("a;b 1 2\na;c 0 4\n")); err == nil {
		t.Errorf("two counts are one: %+v", f)
	}
}

func TestOtherTextIsNotTaken(t *testing.T) {
	for _, text := range []string{"", "\n", "hello world\n", "total 5\n", "{\"a\": 1}\n", "a,b,c\n1,2,3\n", "main 5\nf 6\n", "PERFILE2\x00\x00 1", "# a comment\n", "int main(void) {\n\treturn 0;\n}\n", "7f0000-7f1000 r-xp 0 08:01 5 /lib/x.so\n"} {
		if IsScript([]byte(text), true) || IsFolded([]byte(text), true) {
			t.Errorf("%q is taken for stacks", text)
		}
	}
}

// FuzzText reads arbitrary bytes as both kinds of text.
func FuzzText(f *testing.F) {
	for _, name := range []string{"default.txt", "srcline.txt", "flat.txt", "bare.txt"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 2000)])
	}
	f.Add([]byte("java;main;f_[k] 3\n[/x+0x1];g_[i] 2.5\n"))
	f.Add([]byte("x 1 1.0: PERF_RECORD_MMAP2 1/1: [0x1(0x2) @ 0 fe:00 9 8]: r-xp /x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		IsScript(data, true)
		IsFolded(data, false)
		for _, read := range []func(string, []byte) (*stacktree.File, error){ReadScript, ReadFolded} {
			if file, err := read("p", data); err == nil {
				if err := file.Check(); err != nil {
					t.Error(err)
				}
				if len(file.Samples) > strings.Count(string(data), "\n")+1 || len(file.Problems) > 60 {
					t.Errorf("%d samples, %d problems", len(file.Samples), len(file.Problems))
				}
			}
		}
	})
}
