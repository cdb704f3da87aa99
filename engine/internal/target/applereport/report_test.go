// SPDX-License-Identifier: Apache-2.0

package applereport

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shown are the facts and the frames of a report, a line each.
func shown(r *Report) string {
	var b strings.Builder
	p, s := &r.Facts.Process, &r.Facts.System
	fmt.Fprintf(&b, "%s %s %s pid %d %s %s %s", r.Form, r.Arch, p.Command, p.ID, s.OS, s.Version, s.Build)
	if c := r.Facts.Crash; c != nil {
		fmt.Fprintf(&b, " | %s %#x %v thread %s", c.Name, c.Address, c.HasAddress, c.Thread)
	}
	b.WriteString("\n")
	for _, m := range r.Facts.Messages {
		fmt.Fprintf(&b, "%s said %s\n", m.Module, m.Text)
	}
	for _, a := range r.Facts.Annotations {
		fmt.Fprintf(&b, "%s: %s\n", a.Name, a.Value)
	}
	for i := range r.Threads {
		t := &r.Threads[i]
		fmt.Fprintf(&b, "thread %s %q crashed %v registers %d %s\n", t.ID, t.Name, t.Crashed, len(t.Registers), t.State)
		for _, f := range t.Frames {
			fmt.Fprintf(&b, "  %#x %s+%d %v %s:%d exact %v inlined %v\n", f.Address, f.Symbol, f.Offset, f.HasOffset, f.File, f.Line, f.Exact, f.IsInlined)
		}
	}
	for _, i := range r.Images {
		fmt.Fprintf(&b, "image %#x %#x %x %s %s %s %s\n", i.Base, i.Size, i.UUID, i.Name, i.Arch, i.Version, i.Path)
	}
	for _, p := range r.Problems {
		b.WriteString("problem: " + p + "\n")
	}
	return b.String()
}

// The reports of testdata were written by hand in the forms that Apple's documentation describes.
func TestReportsAreRead(t *testing.T) {
	for _, name := range []string{"crash.ips", "crash.crash", "ios.crash", "translated.txt", "sample.txt", "spindump.txt"} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			r, err := Read(data)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join("testdata", name+".want"))
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(r); got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A cut report has what lies before the cut, and says so; none fails otherwise than by an error.
func TestCutReports(t *testing.T) {
	data, err := os.ReadFile("testdata/crash.ips")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := Read(data)
	if err != nil {
		t.Fatal(err)
	}
	isWithThreads := 0
	for n := range data {
		r, err := Read(data[:n])
		switch {
		case err == nil && len(r.Problems) == 0 && n < len(data)-2:
			t.Errorf("cut to %d bytes: no problem is named", n)
		case err == nil:
			isWithThreads++
			if len(r.Threads) > len(whole.Threads) {
				t.Errorf("cut to %d bytes: %d threads", n, len(r.Threads))
			}
		case err.Error() == "":
			t.Errorf("cut to %d bytes: an error without a text", n)
		}
	}
	if isWithThreads < 100 {
		t.Errorf("%d cut reports have threads", isWithThreads)
	}
}

func TestBadReports(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"bug_type":"298"}` + "\n" + `{"processes":[]}`, "the report has no threads: it is about an event of memory that ran short (Jetsam) (bug_type 298)"},
		{`{"bug_type":"288"}` + "\n" + `{"processByPid":{}}`, "the report has no threads: it is about the stacks of all processes (stackshot) (bug_type 288)"},
		{"Process: a [1]\nPath: b\nAnalysis Tool: /usr/bin/leaks\n", errNoThreads.Error() + ": it is of /usr/bin/leaks"},
		{`{"bug_type":"309"}`, "offset 0x12: the file ends, expected the report behind its first line: it has bug_type 309"},
		{`{"bug_type":"309"}` + "\nProcess: a [1]\n", errNoThreads.Error() + ": it has bug_type 309"},
		{"Process: a [1]\nPath: b\n", errNoThreads.Error()},
		{`{"bug_type":"309"}` + "\n" + `{"threads":[],"threads":[]}`, "offset 0x2b, threads: the member is given twice"},
	} {
		if _, err := Read([]byte(c.text)); err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	for _, text := range []string{
		`{"bug_type":"309"}` + "\n" + `{"threads":[{"frames":[{"imageOffset":16,"imageIndex":99}]}],"usedImages":[]}`,
		`{"bug_type":"309"}` + "\n" + `{"threads":[{"frames":[{"imageOffset":-1,"imageIndex":-99,"symbolLocation":1e99,"symbol":7}],"threadState":{"x":[1,{}],"pc":{"value":"a"}}}],"usedImages":[7,{"base":"x"}]}`,
		`{"bug_type":"309"}` + "\n" + `{"threads":[{}, null, {"frames":[]}],"usedImages":{},"asi":7,"exception":[],"termination":"x"}`,
	} {
		r, err := Read([]byte(text))
		if err != nil && len(text) > 0 && !strings.Contains(err.Error(), "expected") {
			t.Errorf("%q: %v", text, err)
		}
		_ = r
	}
}

// Codes are named where a report does not, and the address of a failed access is among them.
func TestCodesOfExceptions(t *testing.T) {
	for _, c := range []struct{ exception, name, note string }{
		{`"type":"EXC_BREAKPOINT","signal":"SIGTRAP","codes":"0x0000000000000001, 0x0000000192058218"`, "EXC_BREAKPOINT / SIGTRAP 0x0 false", "exception codes: 0x0000000000000001, 0x0000000192058218: EXC_ARM_BREAKPOINT"},
		{`"type":"EXC_BAD_ACCESS","signal":"SIGSEGV","codes":"0x0000000000000001, 0x0000000000000020"`, "EXC_BAD_ACCESS / KERN_INVALID_ADDRESS 0x20 true", ""},
		{`"type":"EXC_BAD_ACCESS","signal":"SIGSEGV","codes":"0x0000000000000001, 0x0000000000000020","subtype":"KERN_INVALID_ADDRESS at 0x0000000000000020"`, "EXC_BAD_ACCESS / KERN_INVALID_ADDRESS 0x20 true", ""},
		{`"type":"EXC_CRASH","signal":"SIGABRT","codes":"0x0000000000000000, 0x0000000000000000"`, "EXC_CRASH / SIGABRT 0x0 false", ""},
		{`"type":"EXC_OTHER","codes":"0x0000000000000007, 0x1"`, "EXC_OTHER 0x0 false", "exception codes: 0x0000000000000007, 0x1"},
		{`"type":"EXC_BAD_ACCESS","codes":"what"`, "EXC_BAD_ACCESS 0x0 false", "exception codes: what"},
	} {
		r, err := Read([]byte(`{"bug_type":"309"}` + "\n" + `{"cpuType":"ARM-64","exception":{` + c.exception + `},"vmregioninfo":"","threads":[{"frames":[{}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s %#x %v", r.Facts.Crash.Name, r.Facts.Crash.Address, r.Facts.Crash.HasAddress)
		var notes []string
		for _, a := range r.Facts.Annotations {
			notes = append(notes, a.Name+": "+a.Value)
		}
		if note := strings.Join(notes, "; "); got != c.name || note != c.note {
			t.Errorf("%s: %s; %s", c.exception, got, note)
		}
	}
}

func TestFramesAsText(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"0   libsystem_kernel.dylib        	0x0000000186388d88 __pthread_kill + 8", "0x186388d88 __pthread_kill+8 true :0 false"},
		{"12  My App                        	0x000000010232c1fc 0x10232c000 + 508", "0x10232c1fc +0 false :0 false"},
		{"3   App 0x1 -[A b:c:] + 12 (A.m:26)", "0x1 -[A b:c:]+12 true A.m:26 false"},
		{"3   App 0x1 f(int, (lambda)) + 12 (a b.cc:3,9) [inlined]", "0x1 f(int, (lambda))+12 true a b.cc:3 true"},
		{"3   App 0x1 closure #1 in A.b() + 24 (<compiler-generated>:0)", "0x1 closure #1 in A.b()+24 true :0 false"},
		{"3   App 0x1 -[NSException raise] + 16 (:-1)", "0x1 -[NSException raise]+16 true :0 false"},
		{"1   ???                           	0x000000000000000a 0 + 10", "0xa +0 false :0 false"},
		{"1   ???                           	0x0 ???", "0x0 +0 false :0 false"},
		{"1   App 0x77354 0x77000 + 0x354\t// -[A b] + 0x824", "0x77354 -[A b]+2084 true :0 false"},
		{"1   App 0x77354 0x77000 + 0x354", "0x77354 +0 false :0 false"},
		{"1   App 0x1 App + 10", "0x1 +0 false :0 false"},
		{"1   App 0x1 <redacted> + 10", "0x1 +0 false :0 false"},
		{"1   App 0x1 a + b + 10", "0x1 a + b+10 true :0 false"},
	} {
		f, ok := parseFrame(c.line)
		got := fmt.Sprintf("%#x %s+%d %v %s:%d %v", f.Address, f.Symbol, f.Offset, f.HasOffset, f.File, f.Line, f.IsInlined)
		if !ok || got != c.want {
			t.Errorf("%q: %v %s, want %s", c.line, ok, got, c.want)
		}
	}
	for _, line := range []string{"", "0", "x App 0x1 f + 1", "0 App 1 f", "0 App 0x11112222333344445 f + 1", "99999999999 A 0x1 f"} {
		if f, ok := parseFrame(line); ok {
			t.Errorf("%q: %+v", line, f)
		}
	}
}

func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(data)
		if err == nil && len(r.Threads) == 0 {
			t.Error("a report without threads")
		}
		if file, err := ReadTrees("a", data); err == nil {
			if err := file.Check(); err != nil {
				t.Error(err)
			}
		}
	})
}

// The work on a report is bounded by its size: a million inlined calls, and lines of registers of many threads.
func TestLargeReports(t *testing.T) {
	const count = 40000
	frames := strings.Repeat(`{"imageOffset":1,"inline":true,"symbol":"f"},`, count)
	r, err := Read([]byte(`{"bug_type":"309"}` + "\n" + `{"threads":[{"frames":[` + frames + `{}]}]}`))
	if err != nil || len(r.Threads[0].Frames) != count+1 {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("Process: a [1]\nPath: /a\n")
	for i := range count / 4 {
		fmt.Fprintf(&b, "Thread %d:\n0   a 0x1 f + 1\n\nThread %d crashed with X (64-bit):\n rax: 0x1\n\n", i, i)
	}
	if r, err = Read([]byte(b.String())); err != nil || len(r.Threads) != count/4 || len(r.Threads[count/4-1].Registers) != 1 {
		t.Error(err)
	}
	b.Reset()
	b.WriteString("Analysis of sampling a (pid 1) every 1 millisecond\nProcess: a [1]\nCall graph:\n    9 Thread_1\n")
	for i := range count / 8 {
		fmt.Fprintf(&b, "%*d f  (in a) + 1  [0x%x]\n", 4+i%3000, 9, i)
	}
	if r, err = Read([]byte(b.String())); err != nil || len(r.Threads) != 1 {
		t.Error(err)
	}
}
