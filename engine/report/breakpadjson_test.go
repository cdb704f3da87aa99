// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/internal/symbolstore"
	"github.com/unwindd/unwindd/engine/internal/target/minidump"
	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
)

const (
	dumpsFolder = "../internal/target/minidump/testdata/"
	x86Dump     = dumpsFolder + "minidump2.dmp"
)

// dumpStack is how many bytes makeDump has of a stack.
const dumpStack = 64

// makeDump makes a dump of Linux on x86-64, as Breakpad writes it: one thread, that has
// crashed at 0x401000 in server, which has no file here. more adds streams.
func makeDump(t *testing.T, path string, more func(b *minidumptest.Builder)) {
	t.Helper()
	b := minidumptest.New(binary.LittleEndian)
	b.System(9, 0x8201)
	context := make([]byte, 1232)
	binary.LittleEndian.PutUint32(context[48:], 0x10000b)
	binary.LittleEndian.PutUint64(context[152:], 0x7fff0018) // rsp
	binary.LittleEndian.PutUint64(context[248:], 0x401000)   // rip
	at := b.Part(context)
	b.Stream(uint32(minidump.StreamThreadList), uint32(1), uint32(7), uint32(0), uint32(0), uint32(0), uint64(0x7ffd000),
		uint64(0x7fff0018), b.Part(make([]byte, dumpStack)), at)
	b.Stream(uint32(minidump.StreamException), uint32(7), uint32(0), uint32(11), uint32(1), uint64(0), uint64(0x45), uint32(0), uint32(0),
		make([]byte, 120), at)
	id := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
	version := b.Pack(uint32(0xfeef04bd), uint32(0x10000), uint32(1), uint32(2), uint32(3), uint32(4), make([]byte, 28))
	b.Stream(uint32(minidump.StreamModuleList), uint32(1), uint64(0x400000), uint32(0x2000), uint32(0), uint32(0),
		b.Text("/srv/server"), version, b.Part("LEpB", id), uint64(0), uint64(0), uint64(0))
	if more != nil {
		more(b)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// breakpadOf is the form of pipelines of the stacks of a target, which ends with an error
// that is wanted.
func breakpadOf(t *testing.T, path string, want error, set ...func(*enginetest.Ask)) map[string]any {
	t.Helper()
	text, err := enginetest.Write(t, path, append(set, func(a *enginetest.Ask) { a.Stack.Format = "breakpad" })...)
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v", path, err)
	}
	var d map[string]any
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, text)
	}
	return d
}

// symbolsOf takes symbol files from a store; "": from none.
func symbolsOf(t *testing.T, store string) func(*enginetest.Ask) {
	t.Helper()
	if store == "" {
		return func(*enginetest.Ask) {}
	}
	c, err := symbolstore.New([]string{store}, download.Options{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return func(a *enginetest.Ask) { a.Engine.Symbols = c }
}

// ofServer has the executable of the example.
func ofServer(a *enginetest.Ask) { a.Engine.Exe = crashExample }

// A published is the text of a dump by minidump-stackwalk, as rust-minidump's tests have it
// (minidump-stackwalk/tests/snapshots, under the licence beside it), and where the text here
// differs, by class.
type published struct {
	dump, json string
	err        error  // that the stacks end with
	symbols    string // a store of symbol files; "": none
}

// publishedClasses are the differences that there may be, by a pattern of the member's path.
// Frames are compared as far as both have them.
var publishedClasses = map[string]string{
	`\.crash_info\.crash_inconsistencies`: "what is inconsistent is not looked for",
	`\.crash_info\.instruction`:           "in AT&T's form",
	`.*\.frames|.*\.frame_count`:          "frames that are not walked, or not guessed",
	`.*\.thread_name`:                     `"" and null`,
	`\.modules\[\d+\]\.missing_symbols`:   "whose frames are guesses that are not made here",
}

// TestBreakpadIsAsPublished holds every member that minidump-stackwalk writes against
// ours.
func TestBreakpadIsAsPublished(t *testing.T) {
	t.Parallel()
	list := []published{{x86Dump, "testdata/breakpad/minidump2.json", nil, ""}}
	if folder := os.Getenv("UNWINDD_MINIDUMPS"); folder != "" {
		rust := func(name string) string { return filepath.Join(folder, "rust", name) }
		list = append(list,
			published{rust("linux-mini.dmp"), rust("test_minidump_stackwalk__linux_json_pretty.snap"), nil, ""},
			published{rust("pipeline-inlines-macos-segv.dmp"), rust("test_minidump_stackwalk__macos_inlines_json_pretty.snap"), nil, rust("symbols")})
	}
	for _, p := range list {
		t.Run(filepath.Base(p.dump), func(t *testing.T) {
			text, err := os.ReadFile(p.json)
			if err != nil {
				t.Fatal(err)
			}
			text = text[strings.Index(string(text), "\n{")+1:]
			var want map[string]any
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			c := comparedJSON{classes: map[string]int{}}
			c.compare("", want, breakpadOf(t, p.dump, p.err, symbolsOf(t, p.symbols)))
			for _, d := range c.differences {
				if class := classOf(d); class != "" {
					c.classes[class]++
				} else {
					t.Error(d)
				}
			}
			t.Logf("%d members are equal; differences: %v", c.equal, c.classes)
			if c.equal < 150 {
				t.Errorf("%d members are equal, expected 150 or more", c.equal)
			}
		})
	}
}

func classOf(difference string) string {
	path, _, _ := strings.Cut(difference, ": ")
	for pattern, class := range publishedClasses {
		if regexp.MustCompile("^(" + pattern + ")$").MatchString(path) {
			return class
		}
	}
	return ""
}

// comparedJSON compares values of JSON, of which want has all members that got must have.
type comparedJSON struct {
	equal       int
	differences []string
	classes     map[string]int
}

func (c *comparedJSON) compare(path string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			c.differs(path, want, got)
			return
		}
		for name, v := range w {
			if _, ok := g[name]; !ok {
				c.differences = append(c.differences, fmt.Sprintf("%s.%s: is not there", path, name))
				continue
			}
			c.compare(path+"."+name, v, g[name])
		}
	case []any:
		g, ok := got.([]any)
		if n := slices.IndexFunc(w, isScanned); n >= 0 && strings.HasSuffix(path, ".frames") {
			c.differs(path, fmt.Sprintf("%d frames by scan", len(w)-n), nil)
			w, g = w[:n], g[:min(n, len(g))]
		}
		if ok && len(g) != len(w) {
			c.differs(path, len(w), len(g))
			w, g = w[:min(len(w), len(g))], g[:min(len(w), len(g))]
		}
		if !ok {
			c.differs(path, want, got)
			return
		}
		if strings.HasSuffix(path, ".modules") { // whose order says nothing
			byBase := func(a, b any) int {
				return strings.Compare(a.(map[string]any)["base_addr"].(string), b.(map[string]any)["base_addr"].(string))
			}
			slices.SortFunc(w, byBase)
			slices.SortFunc(g, byBase)
		}
		for i := range w {
			c.compare(fmt.Sprintf("%s[%d]", path, i), w[i], g[i])
		}
	default:
		if want != got {
			c.differs(path, want, got)
			return
		}
		c.equal++
	}
}

// isScanned reports whether a frame was found by a scan, which takes any address of code.
func isScanned(frame any) bool {
	f, ok := frame.(map[string]any)
	return ok && f["trust"] == "scan"
}

func (c *comparedJSON) differs(path string, want, got any) {
	c.differences = append(c.differences, fmt.Sprintf("%s: %.100v, published is %.100v", path, got, want))
}

// TestBreakpadHasWhatADumpSays has a dump with all that a pipeline may ask for.
func TestBreakpadHasWhatADumpSays(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made.dmp")
	makeDump(t, path, func(b *minidumptest.Builder) {
		unloaded := b.Pack(uint32(12), uint32(24), uint32(3))
		for _, m := range []struct {
			base uint64
			size uint32
			name string
		}{{0x700000, 0x1000, "solo.so"}, {0x400800, 0x1000, "gone.so"}, {0x700000, 0x1000, "solo.so"}} {
			unloaded = append(unloaded, b.Pack(m.base, m.size, uint32(0), uint32(0x45d35f6c), b.Text(m.name))...)
		}
		b.Stream(uint32(minidump.StreamUnloadedModuleList), unloaded)
		b.Stream(uint32(minidump.StreamHandleData), uint32(16), uint32(32), uint32(1), uint32(0),
			uint64(0x44), b.Text("File"), b.Text("/dev/null"), uint32(1), uint32(2), uint32(3), uint32(4))
		b.Stream(uint32(minidump.StreamMiscInfo), uint32(24), uint32(3), uint32(4242), uint32(1699999990), uint32(2), uint32(1))
		b.Stream(uint32(minidump.StreamLinuxCPUInfo), "processor : 0\nmicrocode\t: 0xde\n")
		b.Stream(uint32(minidump.StreamLinuxLSBRelease), "NAME=\"x\"\nID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\nPRETTY_NAME=\"Debian 12\"\n")
		b.Stream(uint32(minidump.StreamLinuxMaps), "00400000-00402000 r-xp 00000000 08:01 86123         /srv/server\n7fff0000-7fff2000 rw-p 00000000 00:00 0 \n")
		b.Stream(uint32(minidump.StreamMozLinuxLimits), "Limit                     Soft Limit           Hard Limit           Units     \n"+
			"Max cpu time              unlimited            unlimited            seconds   \nMax nice priority         0                    20                   \n")
		b.Stream(uint32(minidump.StreamMozSoftErrors), `[ {"Failed": 1} ]`)
		b.Stream(uint32(minidump.StreamThreadNames), uint32(1), uint32(7), uint64(b.Text("main")))
	})
	d := breakpadOf(t, path, nil)
	thread := map[string]any{
		"frame_count": 1.0, "last_error_value": nil, "thread_id": 7.0, "thread_name": "main",
		"frames": []any{map[string]any{
			"frame": 0.0, "file": nil, "function": nil, "function_offset": nil, "inlines": nil, "line": nil, "missing_symbols": true,
			"module": "server", "module_offset": "0x0000000000001000", "offset": "0x0000000000401000", "trust": "context", "unloaded_modules": nil,
		}},
	}
	crashing := maps.Clone(thread)
	frame := maps.Clone(thread["frames"].([]any)[0].(map[string]any))
	frame["registers"] = d["crashing_thread"].(map[string]any)["frames"].([]any)[0].(map[string]any)["registers"]
	crashing["frames"], crashing["threads_index"] = []any{frame}, 0.0
	if r := frame["registers"].(map[string]any); r["rip"] != "0x0000000000401000" || r["rsp"] != "0x000000007fff0018" {
		t.Errorf("registers %v", r)
	}
	gone := func(base, end, name string) map[string]any {
		return map[string]any{"base_addr": base, "cert_subject": nil, "code_id": "45d35f6c1000", "end_addr": end, "filename": name}
	}
	want := map[string]any{
		"status": "OK", "pid": 4242.0, "process_uptime": 10.0, "main_module": 0.0, "modules_contains_cert_info": false, "thread_count": 1.0,
		"crash_info": map[string]any{
			"address": "0x0000000000000045", "adjusted_address": nil, "assertion": nil, "crash_inconsistencies": nil, "crashing_thread": 0.0,
			"instruction": nil, "instruction_pointer_update": nil, "memory_accesses": nil, "type": "SIGSEGV / SEGV_MAPERR",
			"possible_bit_flips": []any{map[string]any{ // the server's first page
				"address": "0x0000000000400045", "confidence": 0.25, "source_register": nil,
				"details": map[string]any{"is_null": false, "nearby_registers": 0.0, "poison_registers": false, "was_low": false, "was_non_canonical": false},
			}},
		},
		"system_info": map[string]any{
			"cpu_arch": "amd64", "cpu_count": 8.0, "cpu_info": "family 6 model 58 stepping 9", "cpu_microcode_version": "0xde",
			"os": "Linux", "os_ver": "10.0.19045 Service Pack 9",
		},
		"modules": []any{map[string]any{
			"base_addr": "0x0000000000400000", "cert_subject": nil, "code_id": "0102030405060708090a0b0c0d0e0f1011121314", "corrupt_symbols": false,
			"debug_file": "server", "debug_id": "0403020106050807090A0B0C0D0E0F100", "end_addr": "0x0000000000402000", "filename": "server",
			"loaded_symbols": false, "missing_symbols": false, "symbol_url": nil, "version": "1.2.3.4",
		}},
		"unloaded_modules": []any{
			gone("0x0000000000700000", "0x0000000000701000", "solo.so"), gone("0x0000000000400800", "0x0000000000401800", "gone.so"),
			gone("0x0000000000700000", "0x0000000000701000", "solo.so"),
		},
		"handles":                []any{map[string]any{"handle": 68.0, "object_name": "/dev/null", "type_name": "File"}},
		"linux_memory_map_count": 2.0,
		"lsb_release":            map[string]any{"codename": "bookworm", "description": "Debian 12", "id": "debian", "release": "12"},
		"proc_limits": map[string]any{"limits": []any{
			map[string]any{"name": "Max cpu time", "soft": "unlimited", "hard": "unlimited", "unit": "seconds"},
			map[string]any{"name": "Max nice priority", "soft": 0.0, "hard": 20.0, "unit": "n/a"},
		}},
		"soft_errors":   []any{map[string]any{"Failed": 1.0}},
		"mac_boot_args": nil, "mac_crash_info": nil,
		"threads":         []any{thread},
		"crashing_thread": crashing,
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A frame in no module may be in one that was unloaded, or in several.
func TestBreakpadNamesUnloadedModules(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made.dmp")
	b := minidumptest.New(binary.LittleEndian)
	b.System(9, 2)
	context := make([]byte, 1232)
	binary.LittleEndian.PutUint32(context[48:], 0x10000b)
	binary.LittleEndian.PutUint64(context[248:], 0xf00800)
	b.Stream(uint32(minidump.StreamThreadList), uint32(1), uint32(7), uint32(0), uint32(0), uint32(0), uint64(0x7ffd000),
		uint64(0), uint64(0), b.Part(context))
	// The thread environment block has the last error behind 13 words.
	b.Stream(uint32(minidump.StreamMemoryList), uint32(1), uint64(0x7ffd068), b.Part(uint32(5)))
	list := b.Pack(uint32(12), uint32(24), uint32(4))
	for _, m := range []struct {
		base uint64
		name string
	}{{0xf00100, `c:\many.dll`}, {0xf00220, `c:\solo.dll`}, {0xf00000, `c:\many.dll`}, {0xf00100, `c:\many.dll`}} {
		list = append(list, b.Pack(m.base, uint32(0x1000), uint32(0), uint32(1), b.Text(m.name))...)
	}
	b.Stream(uint32(minidump.StreamUnloadedModuleList), list)
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	thread := breakpadOf(t, path, nil)["threads"].([]any)[0].(map[string]any)
	want := []any{
		map[string]any{"module": `c:\many.dll`, "offsets": []any{"0x0000000000000700", "0x0000000000000800"}},
		map[string]any{"module": `c:\solo.dll`, "offsets": []any{"0x00000000000005e0"}},
	}
	if diff := cmp.Diff(want, thread["frames"].([]any)[0].(map[string]any)["unloaded_modules"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if thread["last_error_value"] != "ERROR_ACCESS_DENIED" {
		t.Errorf("last error %v", thread["last_error_value"])
	}
}

// TestBreakpadOfACore has the same frames as the JSON of the core, callers at their calls.
func TestBreakpadOfACore(t *testing.T) {
	t.Parallel()
	r := enginetest.Report(t, crashExample+".core", ofServer)
	d := breakpadOf(t, crashExample+".core", nil, ofServer)
	dump := breakpadOf(t, crashExample+".dmp", nil, ofServer)
	if diff := cmp.Diff(framesOf(d), framesOf(dump)); diff != "" {
		t.Errorf("threads (-core +dump):\n%s", diff)
	}
	if got := len(d["threads"].([]any)); got != len(r.Threads) {
		t.Fatalf("%d threads, expected %d", got, len(r.Threads))
	}
	trusts := map[string]string{"context": "context", "cfi": "cfi", "rules": "cfi"}
	for i, th := range r.Threads {
		got := d["threads"].([]any)[i].(map[string]any)
		var want []any
		var inlines []any
		for _, f := range th.Frames {
			if f.Inlined {
				inlines = append(inlines, f.Function)
				continue
			}
			// Callers are at their calls.
			before := min(uint64(len(want)), 1)
			want = append(want, []any{
				f.Function, f.File, float64(f.Line), trusts[f.FoundBy], inlines,
				hexValue(f.PC) - before, hexValue(f.ModuleOffset) - 0x400000 - before, hexValue(f.FunctionOffset) - before,
			})
			inlines = nil
		}
		var have []any
		for j, f := range got["frames"].([]any) {
			f := f.(map[string]any)
			var inlines []any
			if list, ok := f["inlines"].([]any); ok {
				for _, in := range list {
					inlines = append(inlines, in.(map[string]any)["function"])
				}
			}
			text := func(name string) string { s, _ := f[name].(string); return s }
			line, _ := f["line"].(float64)
			have = append(have, []any{
				text("function"), text("file"), line, f["trust"], inlines,
				hexValue(text("offset")), hexValue(text("module_offset")), hexValue(text("function_offset")),
			})
			if f["frame"] != float64(j) {
				t.Errorf("frame %d has number %v", j, f["frame"])
			}
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("thread %s (-json +breakpad):\n%s", th.ID, diff)
		}
		if got["thread_id"] != json.Number(th.ID) && fmt.Sprint(got["thread_id"]) != th.ID {
			t.Errorf("thread %v, expected %s", got["thread_id"], th.ID)
		}
	}
	if crash := d["crash_info"].(map[string]any); !strings.HasPrefix(fmt.Sprint(crash["type"]), "SIG") || crash["crashing_thread"] == nil || crash["instruction"] == nil {
		t.Errorf("crash_info %v", crash)
	}
	if main := d["main_module"]; main == nil || d["modules"].([]any)[int(main.(float64))].(map[string]any)["filename"] != "server" {
		t.Errorf("main_module %v", main)
	}
}

// TestBreakpadOfWaves has threads that have no numbers, whose stacks go on in the thread that
// launched them.
func TestBreakpadOfWaves(t *testing.T) {
	t.Parallel()
	r := enginetest.Report(t, mixedExample)
	d := breakpadOf(t, mixedExample, nil)
	waves := 0
	for i, th := range r.Threads {
		got := d["threads"].([]any)[i].(map[string]any)
		if th.Wave == nil {
			continue
		}
		waves++
		physical := 0
		for _, f := range th.Frames {
			if !f.Inlined {
				physical++
			}
		}
		if got["thread_id"] != nil || !strings.HasPrefix(fmt.Sprint(got["thread_name"]), th.ID) || got["frame_count"] != float64(physical) || len(got["frames"].([]any)) != physical {
			t.Errorf("wave %s with %d frames: %v, %v, %v frames", th.ID, physical, got["thread_id"], got["thread_name"], got["frame_count"])
		}
	}
	if waves == 0 {
		t.Error("no waves")
	}
}

// framesOf are the frames of threads, without what a frame is known by.
func framesOf(d map[string]any) (list []any) {
	for _, th := range d["threads"].([]any) {
		list = append(list, th.(map[string]any)["frames"])
	}
	return list
}

// contextLine is a register in the output of minidump_dump.
var contextLine = regexp.MustCompile(`(?m)^  (\w+) += (0x[0-9a-f]+)$`)

// TestDumpNotesPrintsWhatBreakpadPrints holds the registers of all contexts, and modules,
// against minidump_dump, of which the text of a dump lies beside it.
func TestDumpNotesPrintsWhatBreakpadPrints(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(x86Dump)
	if err != nil {
		t.Fatal(err)
	}
	read, err := minidump.Read(x86Dump, raw)
	if err != nil {
		t.Fatal(err)
	}
	d := report.NewMinidump(read)
	b, err := os.ReadFile(strings.TrimSuffix(x86Dump, ".dmp") + ".dump.txt")
	if err != nil {
		t.Fatal(err)
	}
	contexts := strings.Split(string(b), "MDRawContextX86\n")[1:]
	if len(contexts) != 3 || len(d.Threads) != 2 || len(d.Exceptions) != 1 {
		t.Fatalf("%d contexts, %d threads, %d exceptions", len(contexts), len(d.Threads), len(d.Exceptions))
	}
	have := []map[string]string{d.Threads[0].Registers, d.Threads[1].Registers, d.Exceptions[0].Registers}
	compared := 0
	for i, text := range contexts {
		for _, m := range contextLine.FindAllStringSubmatch(text, -1) {
			if v, ok := have[i][m[1]]; ok {
				compared++
				if hexValue(v) != hexValue(m[2]) {
					t.Errorf("context %d: %s is %s, minidump_dump has %s", i, m[1], v, m[2])
				}
			}
		}
	}
	if compared < 3*22 {
		t.Errorf("%d registers were compared", compared)
	}
	var printed bytes.Buffer
	if err := d.WriteText(&printed, false); err != nil {
		t.Fatal(err)
	}
	text := printed.String()
	for _, m := range regexp.MustCompile(`\((?:code_file|debug_file|debug_identifier)\) += "([^"]+)"`).FindAllStringSubmatch(string(b), -1) {
		if !strings.Contains(text, m[1]) {
			t.Errorf("%q is not in the text", m[1])
		}
	}
	for _, want := range []string{"STATUS_ACCESS_VIOLATION: write at 0x45", "eip                  0x0040429e", "modules (13)", "dumper        thread 4544"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the text:\n%s", want, text)
		}
	}
}

func hexValue(s string) (n uint64) {
	_, _ = fmt.Sscanf(s, "0x%x", &n)
	return n
}

// TestThreadsThatAreNotWalkedShowTheirRegisters has a dump of 32-bit x86, whose plugin is disabled.
func TestThreadsThatAreNotWalkedShowTheirRegisters(t *testing.T) {
	t.Parallel()
	text, err := enginetest.Write(t, x86Dump, func(a *enginetest.Ask) {
		a.Stack.Registers, a.Engine.Plugins.Disabled = true, []string{"i386"}
	})
	if !errors.Is(err, trace.ErrNotWalked) {
		t.Error(err)
	}
	for _, want := range []string{
		"minidump " + x86Dump + ": EXCEPTION_ACCESS_VIOLATION_WRITE at 0x45\n", "#0 0x000000000040429e ??", "eip    0x0040429e",
		"cannot be walked: no architecture plugin for architecture \"i386\"",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the text:\n%s", want, text)
		}
	}
}

// TestASnapshotOfADumpIsAsTheDump: stacks, why it crashed, and what symbol files are found
// by.
func TestASnapshotOfADumpIsAsTheDump(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made.dmp")
	makeDump(t, path, nil)
	whole, _ := enginetest.Snapshot(t, crashExample+".dmp", engine.SnapshotOptions{}, ofServer)
	enginetest.SameStacks(t, "server.dmp", enginetest.Report(t, crashExample+".dmp", ofServer), enginetest.Report(t, whole, ofServer))
	taken, s := enginetest.Snapshot(t, path, engine.SnapshotOptions{})
	// The memory of the stack begins at the stack pointer.
	if len(s.Contents().Memory) != 1 || len(s.Contents().Memory[0].Data) != dumpStack {
		t.Errorf("%d parts of memory, of which the dump has one of %d bytes", len(s.Contents().Memory), dumpStack)
	}
	want, got := enginetest.Report(t, path), enginetest.Report(t, taken)
	enginetest.SameStacks(t, "made.dmp", want, got)
	if diff := cmp.Diff(want.Target.Crash, got.Target.Crash); diff != "" || want.Target.Crash == nil {
		t.Errorf("(-dump +snapshot):\n%s", diff)
	}
	for i := range want.Modules {
		w, g := want.Modules[i], got.Modules[i]
		w.Problem, g.Problem = "", ""
		if diff := cmp.Diff(w, g, cmp.AllowUnexported(report.Module{})); diff != "" || w.DebugID == "" || w.Version == "" {
			t.Errorf("module %d (-dump +snapshot):\n%s", i, diff)
		}
	}
	image := func(path string) string {
		m := breakpadOf(t, path, nil)["modules"].([]any)[0].(map[string]any)
		return fmt.Sprint(m["base_addr"], m["end_addr"], m["debug_file"], m["debug_id"], m["code_id"], m["version"])
	}
	if w, g := image(path), image(taken); w != g {
		t.Errorf("module %s, of the dump %s", g, w)
	}
}
