// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/engine/trace"
)

// TestWhichModuleMatters records made stacks, and holds the order of what they lack.
func TestWhichModuleMatters(t *testing.T) {
	libc, app, plugin := &trace.Module{Path: "/lib/libc.so.6"}, &trace.Module{Path: "/srv/app"}, &trace.Module{Path: "/srv/plugin.so"}
	at := func(m *trace.Module, function string, line int) trace.Frame {
		f := trace.Frame{Module: m, FoundBy: trace.ByCFI, PC: 0x1000}
		if function != "" {
			f.Symbols = []trace.Symbol{{Function: function, Line: line}}
		}
		return f
	}
	signal := trace.Frame{Module: libc, SignalFrame: true, FoundBy: trace.ByCFI}
	guess := at(app, "main", 3)
	guess.FoundBy = trace.ByScan
	crash := func(number int, frames ...trace.Frame) *trace.Stack {
		return &trace.Stack{Thread: &trace.Thread{Crashed: true, Signal: number}, Frames: frames}
	}
	waits := func(frames ...trace.Frame) *trace.Stack {
		return &trace.Stack{Thread: &trace.Thread{}, Frames: frames}
	}
	for _, c := range []struct {
		name   string
		stacks []*trace.Stack
		want   string // modules with their needs, the first one first
	}{
		{"nothing", []*trace.Stack{crash(11, at(app, "f", 1), at(libc, "start", 0)), waits(at(libc, "poll", 0))}, ""},
		{"the failing frame first", []*trace.Stack{crash(11, at(plugin, "", 0), at(app, "", 0))}, "plugin.so names, app names"},
		{"another thread's last", []*trace.Stack{waits(at(app, "", 0)), crash(11, at(plugin, "", 0))}, "plugin.so names, app names"},
		{"a libc without names that only waits", []*trace.Stack{waits(at(libc, "", 0), at(app, "main", 1))}, ""},
		{"a libc that fails", []*trace.Stack{crash(11, at(libc, "", 0), at(app, "main", 1))}, "libc.so.6 names"},
		{"a libc that fails, with a symbol of .dynsym", []*trace.Stack{crash(11, at(libc, "strlen", 0), at(app, "main", 1))}, "libc.so.6 lines"},
		{"abort", []*trace.Stack{crash(6, at(libc, "abort", 0), at(app, "main", 1))}, ""},
		{"abort in a program without lines", []*trace.Stack{crash(6, at(libc, "", 0), at(app, "main", 0))}, "app lines"},
		{"a frame without a line that did not fail", []*trace.Stack{crash(11, at(app, "f", 1), at(plugin, "g", 0))}, ""},
		{"a handler that caught it", []*trace.Stack{crash(11, at(app, "handler", 0), signal, at(plugin, "", 0))}, "plugin.so names"},
		{"a guess", []*trace.Stack{waits(at(plugin, "g", 2), guess)}, "plugin.so rows"},
		{"no rows", []*trace.Stack{{Thread: &trace.Thread{}, Frames: []trace.Frame{at(app, "f", 1)}, Stopped: trace.Stopped{Reason: trace.StopNoRow}}}, "app rows"},
	} {
		l := &lacks{}
		for range l.recorded(slices.Values(c.stacks)) { // it records them
		}
		var got []string
		for _, k := range l.inOrder() {
			if h, ok := k.wanted(trace.ModuleInfo{DebugInfo: trace.DebugInfoNone}, "/srv/app").hint(); ok {
				got = append(got, fmt.Sprintf("%s %s", h.Module[strings.LastIndexByte(h.Module, '/')+1:], h.Needs))
			}
			if h, ok := k.wanted(trace.ModuleInfo{DebugInfo: trace.DebugInfoFound}, "").hint(); ok {
				t.Errorf("%s: with debug information: %+v", c.name, h)
			}
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, expected %s", c.name, text, c.want)
		}
	}
}

// TestRuntimesAreKnownByTheirFiles: names that only begin like one are none.
func TestRuntimesAreKnownByTheirFiles(t *testing.T) {
	for file, want := range map[string]string{
		"/usr/bin/node": "Node.js", "/usr/bin/node22": "Node.js", "nodejs-helper": "", "/usr/lib/libnode.so.115": "Node.js", "libjvm.so": "the Java virtual machine", "javac": "",
		"/usr/bin/php8.2": "PHP", "phpunit": "", "/usr/lib/libruby-3.1.so.3.1": "Ruby", "server": "", "": "", "beam.smp": "Erlang", `C:\x\dotnet`: ".NET",
	} {
		got := ""
		if m := runtimeOf([]string{file}); m != nil {
			got = m.name
		}
		if got != want {
			t.Errorf("%s: %q, expected %q", file, got, want)
		}
	}
}

// TestOneLineCountsTheOthers holds the line of text.
func TestOneLineCountsTheOthers(t *testing.T) {
	hints := []Hint{{Text: "a"}, {Text: "b"}, {Text: "c"}}
	for n, want := range []string{"", "a", "a; and 1 more (-v)", "a; and 2 more (-v)"} {
		if got := HintLine(hints[:n]); got != want {
			t.Errorf("%d hints: %q, expected %q", n, got, want)
		}
		if got := hintLines(hints[:n], true); len(got) != n {
			t.Errorf("%d hints: %q", n, got)
		}
	}
}

// TestModulesOfNoFileHaveNoHint: no file would give what the kernel's page or registered code lacks.
func TestModulesOfNoFileHaveNoHint(t *testing.T) {
	for _, path := range []string{"[vdso]", "[vsyscall]", "[registered at 0x1000]", ""} {
		w := wanted{Module: &trace.Module{Path: path}, info: trace.ModuleInfo{IsMissing: true}, isFailing: true, isRows: true, isPlace: true, frames: 1}
		if h, ok := w.hint(); ok {
			t.Errorf("%s: %+v", path, h)
		}
	}
}

// TestAHintGivesTheOptionsThatFit holds the texts for identities of modules.
func TestAHintGivesTheOptionsThatFit(t *testing.T) {
	id := []byte{0xab, 0xcd}
	for _, c := range []struct {
		w    wanted
		want string
	}{
		{wanted{Module: &trace.Module{Path: "/bin/app (deleted)", BuildID: id}, frames: 1, info: trace.ModuleInfo{IsMissing: true}}, "app is not here (build ID abcd): give the file with --module app=FILE, or the files of its machine with --sysroot DIR, or a server with --debuginfod URL or --symbols URL"},
		{wanted{Module: &trace.Module{Path: `C:\app.exe`, Symbols: trace.SymbolID{DebugID: "A1"}}, frames: 1, isExecutable: true, info: trace.ModuleInfo{IsMissing: true}}, "app.exe is not here (debug ID A1): give the file with --exe FILE, or a store of symbols with --symbols URL"},
		{wanted{Module: &trace.Module{Path: "/bin/app"}, frames: 1}, "app lacks names here (no build ID is known): give the file before it was stripped with --module app=FILE"},
		{wanted{Module: &trace.Module{Path: "/bin/app", BuildID: id}, frames: 1, info: trace.ModuleInfo{DebugInfo: trace.DebugInfoUnreadable}}, "app lacks names here (build ID abcd; what was found cannot be read): give a file that has them with --debug-dir DIR, or a server with --debuginfod URL or --symbols URL"},
		{wanted{Module: &trace.Module{Path: "/bin/app", BuildID: id}, isRows: true}, "app has no call frame information here, so that its callers are guesses (build ID abcd): give a file that has it with --debug-dir DIR, or a server with --debuginfod URL or --symbols URL"},
		{wanted{Module: &trace.Module{Path: "/bin/app", BuildID: id}, frames: 1, info: trace.ModuleInfo{HasSymbols: true}}, ""},
	} {
		h, ok := c.w.hint()
		if h.Text != c.want || ok != (c.want != "") {
			t.Errorf("%q, expected %q", h.Text, c.want)
		}
	}
}

// TestImagesOfMacOSWantTheirDSYM: no server and no package of another system has what they lack.
func TestImagesOfMacOSWantTheirDSYM(t *testing.T) {
	id := []byte{0x4c, 0x4c, 0x44, 0x76, 0x55, 0x55, 0x31, 0x44, 0xa1, 0x23, 0xb5, 0x95, 0x9d, 0x72, 0xfb, 0xad}
	image := func(path string) *trace.Module { return &trace.Module{Path: path, BuildID: id, IsMachO: true} }
	const app, uuid = "/Applications/Notes.app/Contents/MacOS/Notes", "(UUID 4C4C4476-5555-3144-A123-B5959D72FBAD"
	const dsym = "its dSYM with --debug-dir Notes.app.dSYM: it is in the folder dSYMs of the Xcode archive, or `dsymutil` makes it where Notes was built"
	withStore := image(app)
	withStore.Symbols.DebugID = "A1"
	for _, c := range []struct {
		w    wanted
		need Need
		want string
	}{
		{wanted{Module: image(app), frames: 1, isReported: true, info: trace.ModuleInfo{IsMissing: true}}, NeedNames, "Notes lacks names here " + uuid + "): give " + dsym},
		{wanted{Module: image(app), isPlace: true, isReported: true, info: trace.ModuleInfo{IsMissing: true, DebugInfo: trace.DebugInfoMismatch}}, NeedLines, "Notes has no lines here " + uuid + "; what was found is of another build): give " + dsym},
		{wanted{Module: image(app), frames: 1, isExecutable: true, info: trace.ModuleInfo{IsMissing: true}}, NeedFile, "Notes is not here " + uuid + "): give the file with --exe FILE, or " + dsym},
		{wanted{Module: withStore, frames: 1}, NeedNames, "Notes lacks names here " + uuid + "): give " + dsym + ", or a store of symbols with --symbols URL"},
		{wanted{Module: image("/usr/local/bin/tool"), frames: 1}, NeedNames, "tool lacks names here " + uuid + "): give its dSYM with --debug-dir tool.dSYM: it is in the folder dSYMs of the Xcode archive, or `dsymutil` makes it where tool was built"},
		{wanted{Module: image("/usr/lib/dyld"), frames: 1, isReported: true, info: trace.ModuleInfo{IsMissing: true}}, NeedNames, "dyld lacks names here " + uuid + "): files of the system have no dSYM, and the report does not name these frames either; it does after it was opened in Xcode or Console on a Mac that knows this version of the system"},
		{wanted{Module: image("/System/Library/Frameworks/A.framework/A"), frames: 1}, NeedNames, "A lacks names here " + uuid + "): files of the system have no dSYM: give the file of that system with --module A=FILE"},
	} {
		if h, ok := c.w.hint(); !ok || h.Text != c.want || h.Needs != c.need {
			t.Errorf("%s %q, expected %s %q", h.Needs, h.Text, c.need, c.want)
		}
	}
	if h := FileHint(&symbolize.Lack{Path: "Notes", BuildID: id, IsMachO: true}); !strings.Contains(h.Text, "--debug-dir Notes.dSYM") || strings.Contains(h.Text, "debuginfod") {
		t.Error(h.Text)
	}
}

// TestAProfileHintsAtTheKernelAndAtRuntimes makes profiles of one sample of one frame.
func TestAProfileHintsAtTheKernelAndAtRuntimes(t *testing.T) {
	named := []trace.Symbol{{Function: "schedule"}}
	kernel := trace.Module{Path: "[kernel.kallsyms]_text"}
	guest := trace.Module{Path: "[guest.kernel.kallsyms]"}
	const copyIt = "give a copy of the /proc/kallsyms of that boot"
	for _, c := range []struct {
		name   string
		frame  trace.ProfileFrame
		module *trace.Module
		comm   string
		want   string // part of the only hint; "": there is none
	}{
		{"the kernel", trace.ProfileFrame{Kernel: true}, &kernel, "", copyIt},
		{"the kernel with names", trace.ProfileFrame{Kernel: true, Symbols: named}, &kernel, "", ""},
		{"the kernel, whose addresses were hidden", trace.ProfileFrame{Kernel: true, Module: -1}, &kernel, "", "kernel.kptr_restrict"},
		{"a guest's kernel", trace.ProfileFrame{Kernel: true}, &guest, "", ""},
		{"code of Node.js", trace.ProfileFrame{Module: -1, PC: 0x7f0000001000}, &kernel, "node", "start it with `node --perf-basic-prof`, and it is named in a new recording"},
		{"code of Java by its library", trace.ProfileFrame{Module: -1, PC: 0x7f0000001000}, &trace.Module{Path: "/usr/lib/jvm/libjvm.so"}, "main", "Compiler.perfmap"},
		{"code that something made", trace.ProfileFrame{Module: -1, PC: 0x7f0000001000}, &kernel, "app", "its runtime would have to write /tmp/perf-PID.map"},
		{"code with a name of a perf map", trace.ProfileFrame{Module: -1, PC: 0x7f0000001000, Symbols: named}, &kernel, "node", ""},
		{"a jump to an address that is none", trace.ProfileFrame{Module: -1, PC: 0x66}, &kernel, "node", ""},
		{"a guess that may be no code", trace.ProfileFrame{Module: -1, PC: 0x7f0000001000, FoundBy: trace.ByScan}, &kernel, "node", ""},
	} {
		p := &trace.Profile{
			Path: "perf.data", Events: []trace.ProfileEvent{{Name: "cycles"}}, Samples: []trace.ProfileSample{{Weight: 1, Stack: 1}},
			Threads: []trace.ProfileThread{{PID: 1, TID: 1, Comm: c.comm}}, Stacks: []trace.ProfileStack{{}, {}}, Frames: []trace.ProfileFrame{c.frame},
			Modules: []trace.ProfileModule{{Module: c.module, Kernel: c.module == &kernel}}, States: []trace.WaveState{{}}, Stops: []trace.Stopped{{Reason: trace.StopOutermost}},
		}
		r, err := NewProfile(p)
		if err != nil {
			t.Fatal(err)
		}
		hints := r.hints()
		if c.want == "" && len(hints) > 0 || c.want != "" && (len(hints) != 1 || !strings.Contains(hints[0].Text, c.want) || hints[0].Needs != NeedNames) {
			t.Errorf("%s: %+v, expected %q", c.name, hints, c.want)
		}
		if r.NoSymbols = true; len(r.hints()) != 0 {
			t.Errorf("%s: without symbols nothing is missing: %+v", c.name, r.hints())
		}
	}
}

func TestHintsOfRuntimes(t *testing.T) {
	p := &trace.Profile{
		Path: "perf.data", Events: []trace.ProfileEvent{{Name: "cycles"}}, Samples: []trace.ProfileSample{{Weight: 1}}, Threads: []trace.ProfileThread{{PID: 1, TID: 1}},
		Stacks: []trace.ProfileStack{{}}, States: []trace.WaveState{{}}, Stops: []trace.Stopped{{Reason: trace.StopOutermost}}, Runtimes: []string{"cpython"},
	}
	r, err := NewProfile(p)
	if err != nil {
		t.Fatal(err)
	}
	if hints := r.hints(); len(hints) != 1 || hints[0].Needs != NeedMoments || !strings.Contains(hints[0].Text, "frames of cpython") {
		t.Errorf("%+v", hints)
	}
}
