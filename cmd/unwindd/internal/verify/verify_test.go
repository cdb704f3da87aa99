// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/cmd/unwindd/internal/verify"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// self is the test binary.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// vendor is a plugin's executable with a fault.
func vendor(t *testing.T, fault string) string {
	t.Helper()
	return executable(t, prefix+fault)
}

// executable is the test binary by another name.
func executable(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if os.Link(self(t), path) == nil {
		return path
	}
	b, err := os.ReadFile(self(t))
	if err == nil {
		err = os.WriteFile(path, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func examine(t *testing.T, o verify.Options) *verify.Report {
	t.Helper()
	o.Self = self(t)
	if o.Grace == 0 {
		o.Grace = 500 * time.Millisecond
	}
	r, err := verify.Plugin(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestASoundPluginPasses(t *testing.T) {
	r := examine(t, verify.Options{Path: vendor(t, "good"), Grace: 5 * time.Second})
	if !r.Passed || len(r.Findings) > 0 {
		t.Errorf("%+v", r)
	}
	if got, want := strings.Join(r.Checks, " "), strings.Join(verify.Checks(vendor(t, "good")), " "); got != want {
		t.Errorf("checks %s, expected %s", got, want)
	}
}

// A misbehaviour is a fault with what must be found of it.
type misbehaviour struct {
	fault, check string
	detail, fix  string // parts of them
	isWarning    bool
	change       func(*verify.Options)
}

func quick(o *verify.Options) {
	o.StartDeadline, o.CallDeadline = 300*time.Millisecond, 200*time.Millisecond
}

var misbehaviours = []misbehaviour{
	{fault: "exits", check: "start", detail: "exited with status 3 before it was ready; its standard error: libmychip.so.3 is missing", fix: "It runs confined"},
	{fault: "panics-at-start", check: "start", detail: "panic: no firmware, at verify_test.misbehave (main_test.go:", fix: "Mend what ended it"},
	{fault: "hangs-at-start", check: "start", detail: "did not start within", fix: "Shake hands first", change: quick},
	{fault: "prints-a-banner", check: "start", detail: `wrote "MyChip plugin, version 7`, fix: "Write nothing to standard output"},
	{fault: "closes-its-output", check: "start", detail: "closed its standard output", fix: "main calls sdk.Serve"},
	{fault: "other-version", check: "start", detail: "version", fix: "of this unwindd"},
	{fault: "listens-elsewhere", check: "start", detail: `network "tcp"`, fix: "PLUGIN_UNIX_SOCKET_DIR"},
	{fault: "hangs-in-describe", check: "description", detail: "Describe of the architecture: no answer within", fix: "Answer in time", change: quick},
	{fault: "panics-in-describe", check: "description", detail: "index out of range [3] with length 1, at verify_test.odd.Describe (main_test.go:", fix: "Check lengths"},
	{fault: "refuses-to-be-described", check: "description", detail: "no licence", fix: "data that is constant"},
	{fault: "unknown-pc", check: "description", detail: "Description.PC: 64 is the number of no register", fix: "Mend the field"},
	{fault: "changes", check: "description-constant", detail: "Description.Version", fix: "OpenObject or BindThreads"},
	{fault: "another-in-each-process", check: "restart", detail: "first in Description.Version", fix: "Describe what is constant"},
	{fault: "overlapping-sets", check: "register-sets", detail: "sp at 8 and pc at 10 overlap", fix: "offset and size", isWarning: true},
	{fault: "wide-mask", check: "lanes", detail: "the mask exec of threads with 32 lanes has 64 bits", fix: "a bit for each", isWarning: true},
	{fault: "unknown-register", check: "rows", detail: "Rows[0].CFA.Register: 99 is the number of no register", fix: "Mend the field"},
	{fault: "unordered", check: "rows", detail: "where the row before ends", fix: "Mend the field"},
	{fault: "overlapping", check: "rows", detail: "where the row before ends", fix: "Mend the field"},
	{fault: "undecodable", check: "rows", detail: "Rows[0].Rules[0].Rule.Expr", fix: "Mend the field"},
	{fault: "in-circles", check: "cycles", detail: "the stack pointer of the frame itself", fix: "the return address is Undefined"},
	{fault: "too-few", check: "rows", detail: "expected as many", fix: "Mend the field"},
	{fault: "believes-notes", check: "garbage", detail: "panic: runtime error: index out of range", fix: "Check lengths"},
	{fault: "crashes", check: "batches", detail: "FrameRules of 257 functions: its process exited with status 2: panic: runtime error: index out of range [7] with length 1, at verify_test.decode (main_test.go:", fix: "Mend what ends the process"},
	{fault: "hangs", check: "rows", detail: "no answer within", fix: "Answer in time", change: func(o *verify.Options) {
		o.CallDeadline = 100 * time.Millisecond
	}},
	{fault: "dies-of-two-calls", check: "concurrency", detail: "exited with status 134; its standard error: terminate called", fix: "Mend what ends the process"},
	{fault: "wants-no-engine", check: "garbage", detail: "panic", fix: "Check lengths"},
	{fault: "ignores-cancellation", check: "cancellation", detail: "OpenObject: the process still computes", fix: "End the call when its context does"},
	{fault: "keeps-everything", check: "memory", detail: "MiB after the same calls", fix: "Keep nothing"},
	{fault: "eats-memory", check: "garbage", detail: "MiB of memory, expected at most 200 MiB, and was killed", fix: "Mend what ends the process", change: func(o *verify.Options) {
		o.Memory = 200 << 20
	}},
	{fault: "forgets-objects", check: "restart", detail: "unknown handle", fix: "Answer ErrObjectNotOpen"},
	{fault: "starts-a-process", check: "batches", detail: "operation not permitted", fix: "A plugin runs confined"},
	{fault: "outlives-its-engine", check: "end", detail: "still runs", fix: "sdk.Serve does"},

	{fault: "writes-half-a-line", check: "start", detail: "did not start within", fix: "Shake hands first", change: quick},
	{fault: "speaks-another-protocol", check: "start", detail: "netrpc", fix: "Write grpc as the fifth field"},
	{fault: "listens-in-another-folder", check: "start", detail: "/tmp/s", fix: "PLUGIN_UNIX_SOCKET_DIR"},
	{fault: "listens-nowhere", check: "start", detail: "no such file", fix: "PLUGIN_UNIX_SOCKET_DIR"},
	{fault: "writes-without-end", check: "start", detail: "closed its standard output", fix: "Write the handshake line"},

	{fault: "register-names-with-blanks", check: "description", detail: `"f p", expected letters`, fix: "Mend the field"},
	{fault: "registers-without-end", check: "description", detail: "Description.Registers", fix: "Mend the field"},
	{fault: "recognises-nothing", check: "description", detail: "Recognises is empty", fix: "Name the ELF machine", isWarning: true},
	{fault: "empty-dialect", check: "dialects", detail: "warp has no operations and is not built in", fix: "List the operations", isWarning: true},
	{fault: "unknown-operation", check: "description", detail: `no operation is called "DW_OP_WARP_lane"`, fix: "Mend the field"},
	{fault: "opcode-twice", check: "description", detail: "is both DW_OP_LLVM_push_lane and DW_OP_LLVM_offset", fix: "Mend the field"},
	{fault: "other-encoding-of-a-built-in-dialect", check: "description", detail: "expected what the dialect llvm-user that is built in has", fix: "Mend the field"},
	{fault: "dialect-of-no-name", check: "garbage", detail: `Dialect: "warp" is the name of no dialect`, fix: "Mend the field"},
	{fault: "threads-of-no-agent", check: "garbage", detail: `Wave.Agent: "gpu7" is the ID of none`, fix: "Mend the field"},
	{fault: "threads-without-end", check: "garbage", detail: `ID: "w" is also the ID of another`, fix: "Mend the field"},
	{fault: "problems-without-end", check: "garbage", detail: "Problems: 100000, expected at most", fix: "Mend the field"},
	{fault: "registers-of-no-size", check: "garbage", detail: "100 bytes of register a, which has 4", fix: "Mend the field"},
	{fault: "variables-out-of-order", check: "variables", detail: "Start[1]: 0x401900, expected at least 0x401918", fix: "Sort the ranges", change: withObject},
	{fault: "variables-in-no-code", check: "variables", detail: "[0x10, 0x20) of section 0 is in no section of code", fix: "addresses of the file", change: withObject},
	{fault: "variables-pop-too-much", check: "variables", detail: "ill-formed expression: offset 0: DW_OP_plus", fix: "Mend the expression", change: withObject},
	{fault: "variables-undecodable", check: "objects", detail: "Variables[0].Locations[0]", fix: "Mend the field", change: withObject},
	{fault: "variables-half-there", check: "objects", detail: "1 starts, 0 ends and 1 locations", fix: "it cannot be sent", change: withObject},
	{fault: "refuses-objects", check: "objects", detail: "this compiler is not supported", fix: "Answer what is known", change: withObject},
	{fault: "object-in-itself", check: "cycles", detail: "Nested[0] is the whole file", fix: "smaller than the file", change: withObject},
	{fault: "breaks-on-damage", check: "damage", detail: "panic: odd length", fix: "Check lengths", change: withObject},
	{fault: "forgets-its-rows", check: "restart", detail: "a second process answers other rows", fix: "ErrObjectNotOpen", change: withObject},
	{fault: "tables-without-a-reason", check: "garbage", detail: "Reason: empty, expected why the rows override CFI", fix: "Mend the field"},
	{fault: "unknown-column", check: "rows", detail: "Rules[0].Column: 77 is the number of no register", fix: "Mend the field"},
	{fault: "rules-pop-too-much", check: "expressions", detail: "Rules[0].Rule.Expr: ill-formed expression: offset 1: DW_OP_plus", fix: "with the CFA on the stack"},
	{fault: "rows-elsewhere", check: "rows", detail: "Rows[0].Start: 0x1, expected in", fix: "Mend the field"},
	{fault: "answers-by-the-batch", check: "batches", detail: "a function has other rows in a batch than alone", fix: "does not depend on its neighbours"},
	{fault: "answers-by-the-call", check: "concurrency", detail: "made at once, gave different answers", fix: "share nothing"},
	{fault: "recurses-without-end", check: "rows", detail: "stack overflow", fix: "Mend what ends the process"},
	{fault: "exits-in-a-call", check: "rows", detail: "exited with status 0", fix: "Mend what ends the process"},
	{fault: "kills-itself", check: "rows", detail: "killed", fix: "Mend what ends the process"},
	{fault: "computes-in-between", check: "idle", detail: "computes although no call is under way", fix: "End with the call"},
	{fault: "connects", check: "garbage", detail: "dial tcp", fix: "A plugin runs confined"},
	{fault: "more-threads-than-asked", check: "batches", detail: "258 for 257 threads", fix: "Mend the field"},
	{fault: "lanes-without-end", check: "batches", detail: "Lanes: 1048576, expected at most", fix: "Mend the field"},
	{fault: "maps-that-overlap", check: "batches", detail: "expected at or above the end of the range before", fix: "Mend the field"},
	{fault: "maps-in-circles", check: "cycles", detail: "round in a circle", fix: "nearer to memory"},
	{fault: "no-translation", check: "translate", detail: "not implemented, and BindThreads answered an opaque range", fix: "Write Translate"},
	{fault: "translates-to-itself", check: "cycles", detail: "it leads to 0x0 of the same space", fix: "another space"},
	{fault: "translates-to-nothing", check: "translate", detail: "TranslateAnswer.Expr: empty", fix: "Mend the field"},
	{fault: "translates-otherwise", check: "translate", detail: "two calls gave different expressions", fix: "nothing of the time"},
	{fault: "translates-to-no-register", check: "translate", detail: "register 31: the description has no such register", fix: "Mend the expression"},
	{fault: "classes-of-nothing", check: "batches", detail: "ClassifyReturnAnswer.targets: 257 elements, expected 0", fix: "Write messages as arch.proto says"},
	{fault: "unknown-class", check: "batches", detail: "ClassifyReturnAnswer.classes: 99 at 0", fix: "Write messages as arch.proto says"},
	{fault: "target-without-a-call", check: "batches", detail: "expected 0 where there is no direct call", fix: "Mend the field"},
	{fault: "instructions-past-the-code", check: "garbage", detail: "Instructions[0].", fix: "Mend the field"},
	{fault: "options-for-a-tool", check: "garbage", detail: "LLVM.CPU", fix: "Mend the field"},
	{fault: "starts-a-tool", check: "garbage", detail: "objdump: operation not permitted", fix: "A plugin runs confined"},
	{fault: "text-of-no-encoding", check: "garbage", detail: "UTF-8", fix: ""},
}

// withObject examines a plugin with a code object.
func withObject(o *verify.Options) { o.Objects = []string{"../../../../examples/crash/server"} }

// TestMisbehaviourIsFoundAndExplained examines a third of the plugins, or with UNWINDD_PROOF=1 all.
func TestMisbehaviourIsFoundAndExplained(t *testing.T) {
	oracle.All(t)
	if runtime.GOOS != "linux" {
		t.Skip("what a process uses is known on Linux only")
	}
	for i, m := range misbehaviours {
		if i%3 != 0 && !proof.IsRequested() {
			continue
		}
		t.Run(m.fault, func(t *testing.T) {
			o := verify.Options{Path: vendor(t, m.fault)}
			if m.change != nil {
				m.change(&o)
			}
			r := examine(t, o)
			severity := archtest.Error
			if m.isWarning {
				severity = archtest.Warning
			}
			if r.Passed != m.isWarning {
				t.Errorf("passed: %v", r.Passed)
			}
			for _, f := range r.Findings {
				if f.Check == m.check && f.Severity == severity && strings.Contains(f.Detail, m.detail) && strings.Contains(f.Fix, m.fix) {
					return
				}
			}
			t.Errorf("not found; findings:\n%s", text(r))
		})
	}
}

// ours are the plugins of this house, each with code objects of its machine.
var ours = []struct {
	pkg     string // of the executable
	objects []string
}{
	{"plugins/x86_64/unwindd-arch-x86_64", []string{"examples/crash/server"}},
	{"plugins/amdgpu/unwindd-arch-amdgpu", []string{"plugins/amdgpu/testdata/amd_k.gfx1100.co"}},
	{"plugins/visa/unwindd-arch-visa", []string{"plugins/visa/stream/testdata/skl-rec-O2-1.dbg"}},
}

func TestOurOwnPluginsPass(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: run without -short") // it needs nothing but Go
	}
	dir := t.TempDir()
	for _, p := range ours {
		t.Run(filepath.Base(p.pkg), func(t *testing.T) {
			path := filepath.Join(dir, filepath.Base(p.pkg))
			oracle.With{Dir: "../../../.."}.Run(t, "go", "build", "-o", path, "./"+p.pkg)
			o := verify.Options{Path: path, Grace: 5 * time.Second}
			for _, name := range p.objects {
				o.Objects = append(o.Objects, filepath.Join("../../../..", name))
			}
			if r := examine(t, o); !r.Passed {
				t.Errorf("findings:\n%s", text(r))
			}
		})
	}
}

func text(r *verify.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		b.WriteString(f.Check + ": " + string(f.Severity) + ": " + f.Detail + "\n    " + f.Fix + "\n")
	}
	return b.String()
}

// stateOf is a copy of the example's core with what its stacks are said to be.
func stateOf(t *testing.T, expected string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"server", "server.core"} {
		b, err := os.ReadFile(filepath.Join("../../../../examples/crash", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "server.core")
	if expected != "" {
		if err := os.WriteFile(path+".expected.json", []byte(expected), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestRecordedStatesAreWalked(t *testing.T) {
	plugin := filepath.Join(t.TempDir(), "unwindd-arch-x86_64")
	oracle.With{Dir: "../../../.."}.Run(t, "go", "build", "-o", plugin, "./plugins/x86_64/unwindd-arch-x86_64")
	for _, c := range []struct{ name, expected, want string }{
		{"right", `{"target":{"kind":"elf-core"}}`, ""},
		{"another value", `{"target":{"kind":"minidump"}}`, `target.kind is "elf-core", expected "minidump"`},
		{"no threads", `{"threads":[]}`, "entries, expected 0"},
		{"another form", `{"threads":{}}`, "threads is ["},
		{"a member that is not there", `{"threads":[{"frames":[{"pc":"0x1"}]}]}`, "threads[0].frames[0].pc is "},
		{"no JSON", `{`, "unexpected EOF"},
		{"no file", ``, "there is no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want != "" && c.expected != `{"threads":[]}` {
				proof.Only(t)
			}
			path := stateOf(t, c.expected)
			r := examine(t, verify.Options{Path: plugin, States: []string{path}, Grace: 5 * time.Second})
			found := ""
			for _, f := range r.Findings {
				if f.Check == "states" {
					found += f.Detail
				}
			}
			if r.Passed != (c.want == "") || (c.want == "") != (found == "") || !strings.Contains(found, c.want) {
				t.Errorf("%v, found %q, expected %q", r.Passed, found, c.want)
			}
		})
	}
}
