// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file writes stacks in the machine-readable format of minidump-stackwalk
// (json-schema.md of rust-minidump's minidump-processor), which pipelines for crash reports
// read. All of its members are there; unknown ones are null.

// trusts are the trust of a frame by how it was found. A frame that rules found, but further
// out than a scan, has another: see trust.
var trusts = map[trace.FoundBy]string{
	trace.ByContext:      "context",
	trace.ByCFI:          "cfi",
	"breakpad":           "cfi",
	"pe":                 "cfi",
	"compact-unwind":     "cfi",
	trace.ByFrameData:    "cfi",
	trace.ByObject:       "cfi",
	trace.ByRules:        "cfi",
	trace.ByCallSite:     "cfi",
	trace.ByFramePointer: "frame_pointer",
	trace.ByFunctionBody: "frame_pointer",
	trace.ByBackChain:    "frame_pointer",
	trace.ByScan:         "scan",
	trace.ByCallChain:    "prewalked",
	trace.ByLaunch:       "prewalked",
	trace.ByReport:       "prewalked",
	trace.ByRuntime:      "cfi",
}

// trust names how a frame was found. hasScan means that a frame further in was found by a
// scan, and is set when this one was.
func trust(f *trace.Frame, hasScan *bool) string {
	*hasScan = *hasScan || f.FoundBy == trace.ByScan
	name := cmp.Or(trusts[f.FoundBy], "none")
	if *hasScan && name == "cfi" {
		return "cfi_scan"
	}
	return name
}

// The names of operating systems and processors that differ from ours.
var (
	systemNames    = map[string]string{"Windows": "Windows NT", "macOS": "Mac OS X", "iOS": "iOS"}
	processorNames = map[string]string{"i386": "x86", "x86_64": "amd64", "aarch64": "arm64", "": "unknown"}
)

// callSizes are the distances from a return address back to the frame's address: an
// instruction where all have one size, else a byte.
var callSizes = map[string]uint64{"aarch64": 4, "arm": 2}

// breakpadJSON writes the threads, and keeps facts about them for later members.
type breakpadJSON struct {
	indented
	t      *engine.Target
	facts  *trace.Facts
	images map[*trace.Module]image
	digits int // of an address

	count   int          // of threads
	crashed *trace.Stack // the thread that the target is about; nil: none so far
	index   int          // of crashed

	hasScan bool // among the written frames of the stack
}

// image is the address range of a whole module.
type image struct{ base, end uint64 }

// WriteBreakpad writes the stacks as minidump-stackwalk does with --json. Threads come while
// they are walked, as in WriteJSON.
func (s *Stacks) WriteBreakpad(ctx context.Context, w io.Writer, t *engine.Target) error {
	j := newBreakpadJSON(t)
	return writeDeferred(w, "", func(w io.Writer) error {
		j.indented = indented{output: newOutput(w), depth: 1}
		j.open("[")
		for stack := range s.each {
			j.note(stack)
			j.thread(stack, nil)
			if err := j.check(); err != nil {
				break // Flush returns it
			}
		}
		j.close("]")
		return j.Flush()
	}, func() (head, tail string, err error) {
		var b bytes.Buffer
		j.indented = indented{output: newOutput(&b), depth: 1}
		j.metadata(ctx)
		err = j.Flush()
		return strings.TrimPrefix(b.String(), "\n"), "", err
	})
}

func newBreakpadJSON(t *engine.Target) *breakpadJSON {
	j := &breakpadJSON{t: t, facts: t.Info().Facts, images: map[*trace.Module]image{}, digits: 16}
	if j.facts == nil {
		j.facts = &trace.Facts{}
	}
	if j.facts.System.Bits() == 32 {
		j.digits = 8
	}
	return j
}

// image is the address range of a module, from a cache.
func (j *breakpadJSON) image(m *trace.Module) image {
	found, ok := j.images[m]
	if !ok {
		found = imageOf(m)
		j.images[m] = found
	}
	return found
}

// page is the unit of mapping.
const page = 0x1000

// imageOf is the address range of a module: the target's own, or from the first page of its
// segments to the last one.
func imageOf(m *trace.Module) image {
	if m.Size > 0 {
		return image{m.Base, m.Base + m.Size}
	}
	all := image{base: math.MaxUint64}
	for _, s := range m.Segments {
		all.base, all.end = min(all.base, s.Start), max(all.end, s.Start+s.Size)
	}
	if len(m.Segments) == 0 {
		return image{}
	}
	return image{all.base &^ (page - 1), (all.end + page - 1) &^ (page - 1)}
}

// note keeps the thread that the target is about: the one of the crash, or the first one that
// crashed.
func (j *breakpadJSON) note(s *trace.Stack) {
	if id := j.crashID(); id != "" && s.Thread.ID == id || id == "" && s.Thread.Crashed && j.crashed == nil {
		j.crashed, j.index = s, j.count
	}
	j.count++
}

func (j *breakpadJSON) crashID() string {
	if j.facts.Crash == nil {
		return ""
	}
	return j.facts.Crash.Thread
}

// null begins a member with an unknown value.
func (j *breakpadJSON) null(name string) {
	j.member(name)
	j.put("null")
}

// orNull writes a text, and null for "".
func (j *breakpadJSON) orNull(name, value string) {
	if value == "" {
		j.null(name)
		return
	}
	j.stringMember(name, value)
}

// numberOrNull writes a number, and null where it is not known.
func (j *breakpadJSON) numberOrNull(name string, isKnown bool, n int) {
	if !isKnown {
		j.null(name)
		return
	}
	j.numberMember(name, n)
}

// addressOrNull writes an address, and null where it is not known.
func (j *breakpadJSON) addressOrNull(name string, isKnown bool, a uint64) {
	if !isKnown {
		j.null(name)
		return
	}
	j.addressMember(name, a)
}

func (j *breakpadJSON) address(a uint64) string { return fmt.Sprintf("0x%0*x", j.digits, a) }

func (j *breakpadJSON) addressMember(name string, a uint64) {
	j.member(name)
	j.put(`"`, j.address(a), `"`)
}

// thread writes a stack as an element of a list.
func (j *breakpadJSON) thread(s *trace.Stack, registers []trace.RegisterValue) {
	j.next()
	j.open("{")
	j.threadMembers(s, registers)
	j.close("}")
}

// threadMembers writes the members of a thread; registers are the registers of its first
// frame, where they are to be written.
func (j *breakpadJSON) threadMembers(s *trace.Stack, registers []trace.RegisterValue) {
	th := s.Thread
	j.numberMember("frame_count", countFrames(s))
	j.orNull("last_error_value", j.facts.LastErrors[th.ID])
	if id, err := strconv.ParseUint(th.ID, 10, 32); err == nil {
		j.numberMember("thread_id", int(id))
		j.orNull("thread_name", th.Name)
	} else {
		// Waves and goroutines have no number of the operating system.
		j.null("thread_id")
		j.orNull("thread_name", strings.TrimSpace(th.ID+" "+th.Name))
	}
	index := 0
	j.hasScan = false
	j.member("frames")
	j.open("[")
	j.frames(th, s.Frames, &index, registers)
	for i := range s.Launchers {
		l := &s.Launchers[i]
		j.hasScan = false
		j.frames(cmp.Or(l.Thread, th), l.Frames, &index, nil)
	}
	j.close("]")
}

// countFrames counts the written frames of a stack, tail callers too. The format has no frames of
// language runtimes.
func countFrames(s *trace.Stack) (n int) {
	count := func(frames []trace.Frame) {
		for i := range frames {
			if frames[i].IsNative() {
				n += 1 + len(frames[i].TailCallers())
			}
		}
	}
	count(s.Frames)
	for i := range s.Launchers {
		count(s.Launchers[i].Frames)
	}
	return n
}

// frames writes frames, and the tail callers of each.
func (j *breakpadJSON) frames(th *trace.Thread, list []trace.Frame, index *int, registers []trace.RegisterValue) {
	for i := range list {
		if !list[i].IsNative() {
			continue
		}
		j.next()
		j.open("{")
		j.frame(th, &list[i], *index)
		if len(registers) > 0 {
			j.object("registers", func() { j.registers(registers) })
			registers = nil // of the top frame
		}
		j.close("}")
		*index++
		j.frames(th, list[i].TailCallers(), index, nil)
	}
}

func (j *breakpadJSON) registers(list []trace.RegisterValue) {
	for _, r := range list {
		j.member(r.Name)
		j.put(`"`, fmt.Sprintf("0x%0*x", max(int(r.Bits)/4, 1), r.Value), `"`)
	}
}

// frame writes the members of a frame.
func (j *breakpadJSON) frame(th *trace.Thread, f *trace.Frame, index int) {
	own := &trace.Symbol{}
	if n := len(f.Symbols); n > 0 {
		own = &f.Symbols[n-1]
	}
	// The address of a caller is at the call, not where it returns to.
	pc, back := f.PC, uint64(0)
	if !f.Exact {
		back = min(cmp.Or(callSizes[th.Arch], 1), pc)
		pc -= back
	}
	j.numberMember("frame", index)
	j.orNull("file", own.File)
	j.orNull("function", own.Function)
	j.addressOrNull("function_offset", own.HasStart && f.ModuleOffset-back >= own.Start, f.ModuleOffset-back-own.Start)
	j.inlines(f)
	j.numberOrNull("line", own.Line != 0, own.Line)
	j.boolMember("missing_symbols", own.Function == "")
	if f.Module != nil {
		j.orNull("module", object.LastPart(f.Module.Path))
		j.addressMember("module_offset", pc-j.image(f.Module).base)
	} else {
		j.null("module")
		j.null("module_offset")
	}
	j.addressMember("offset", pc)
	j.member("trust")
	j.put(`"`, trust(f, &j.hasScan), `"`)
	j.unloadedAt(f, pc)
}

// inlines writes the calls that were inlined into a frame, innermost first.
func (j *breakpadJSON) inlines(f *trace.Frame) {
	if len(f.Symbols) < 2 {
		j.null("inlines")
		return
	}
	j.list("inlines", len(f.Symbols)-1, func(i int) {
		s := &f.Symbols[i]
		j.orNull("file", s.File)
		j.orNull("function", s.Function)
		j.numberOrNull("line", s.Line != 0, s.Line)
	})
}

// unloadedAt writes the unloaded modules that were mapped at a frame of no module: each name
// once, with the offsets in it.
func (j *breakpadJSON) unloadedAt(f *trace.Frame, pc uint64) {
	found := map[string][]uint64{}
	for i := range j.facts.Unloaded {
		if m := &j.facts.Unloaded[i]; f.Module == nil && m.Contains(pc) {
			found[m.Name] = append(found[m.Name], pc-m.Base)
		}
	}
	if len(found) == 0 {
		j.null("unloaded_modules")
		return
	}
	names := slices.Sorted(maps.Keys(found))
	j.list("unloaded_modules", len(names), func(i int) {
		j.stringMember("module", names[i])
		j.member("offsets")
		j.open("[")
		offsets := found[names[i]]
		slices.Sort(offsets)
		for _, o := range slices.Compact(offsets) {
			j.next()
			j.put(`"`, j.address(o), `"`)
		}
		j.close("]")
	})
}

// metadata writes the members beside the threads.
func (j *breakpadJSON) metadata(ctx context.Context) {
	j.member("status")
	j.put(`"OK"`)
	j.crash(ctx)
	j.system()
	j.process()
	j.modules()
	j.list("unloaded_modules", len(j.facts.Unloaded), func(i int) {
		m := &j.facts.Unloaded[i]
		j.addressMember("base_addr", m.Base)
		j.null("cert_subject")
		j.stringMember("code_id", strings.ToLower(m.CodeID))
		j.addressMember("end_addr", m.Base+m.Size)
		j.stringMember("filename", m.Name)
	})
	j.linux()
	j.macOS()
	j.numberMember("thread_count", j.count)
	if j.crashed != nil && len(j.crashed.Frames) > 0 {
		j.object("crashing_thread", func() {
			j.numberMember("threads_index", j.index)
			j.threadMembers(j.crashed, j.t.TopRegisters(j.crashed.Thread))
		})
	}
}

// process writes the members of the process.
func (j *breakpadJSON) process() {
	p := &j.facts.Process
	j.numberOrNull("pid", p.ID != 0, int(p.ID))
	isDated := !p.Created.IsZero() && !p.Kept.IsZero()
	j.numberOrNull("process_uptime", isDated, int(max(p.Kept.Sub(p.Created).Seconds(), 0)))
	if j.facts.Handles == nil {
		j.null("handles")
		return
	}
	j.list("handles", len(j.facts.Handles), func(i int) {
		h := &j.facts.Handles[i]
		j.member("handle")
		j.put(strconv.FormatUint(h.Number, 10))
		j.orNull("object_name", h.Name)
		j.orNull("type_name", h.Type)
	})
}

// crash writes crash_info. For a target without a reason it is the signal's.
func (j *breakpadJSON) crash(ctx context.Context) {
	c := j.facts.Crash
	if c == nil {
		c = crashBySignal(j.t)
	}
	j.object("crash_info", func() {
		j.addressOrNull("address", c.HasAddress, c.Address)
		j.null("adjusted_address")
		j.orNull("assertion", c.Assertion)
		j.null("crash_inconsistencies")
		j.numberOrNull("crashing_thread", j.crashed != nil, j.index)
		j.orNull("instruction", j.instruction(ctx))
		j.null("instruction_pointer_update")
		j.analysis(ctx)
		j.orNull("type", c.Name)
	})
}

// analysis writes the memory accesses of the failed instruction, and likely intended
// addresses.
func (j *breakpadJSON) analysis(ctx context.Context) {
	a := j.t.Analysis(ctx)
	if a.IsDecoded {
		j.list("memory_accesses", len(a.Accesses), func(i int) {
			m := &a.Accesses[i]
			j.orNull("access_type", accessType(m))
			j.addressMember("address", m.Address)
			if m.IsGuardPage {
				j.member("is_likely_guard_page")
				j.put("true")
			}
			j.numberOrNull("size", m.Size > 0, int(m.Size))
		})
	} else {
		j.null("memory_accesses")
	}
	if len(a.BitFlips) == 0 {
		j.null("possible_bit_flips")
		return
	}
	j.list("possible_bit_flips", len(a.BitFlips), func(i int) {
		f := &a.BitFlips[i]
		j.addressMember("address", f.Address)
		j.member("confidence")
		j.put(strconv.FormatFloat(f.Confidence, 'f', -1, 64))
		j.object("details", func() {
			for _, flag := range []struct {
				name string
				isIt bool
			}{{"is_null", f.IsNull}, {"poison_registers", f.PoisonRegisters}, {"was_low", f.WasLow}, {"was_non_canonical", f.WasNonCanonical}} {
				j.member(flag.name)
				j.put(strconv.FormatBool(flag.isIt))
			}
			j.numberMember("nearby_registers", f.NearbyRegisters)
		})
		j.null("source_register")
	})
}

func accessType(m *trace.MemoryAccess) string {
	switch {
	case m.IsRead && m.IsWrite:
		return "readwrite"
	case m.IsRead:
		return "read"
	case m.IsWrite:
		return "write"
	}
	return ""
}

func crashBySignal(t *engine.Target) *trace.Crash {
	info := t.Info()
	if info.Signal == 0 {
		return &trace.Crash{}
	}
	name := cmp.Or(target.SignalName(info.Machine, info.Signal), fmt.Sprintf("signal %d", info.Signal))
	return &trace.Crash{Name: name, Address: info.FaultAddress, HasAddress: info.HasFaultAddress}
}

// instruction is the instruction that a thread was about to execute when it crashed; "" where
// it is not known.
func (j *breakpadJSON) instruction(ctx context.Context) string {
	if j.crashed == nil || j.crashed.Thread.Unread != "" {
		return ""
	}
	frames := j.crashed.Frames
	top := slices.IndexFunc(frames, func(f trace.Frame) bool { return f.IsNative() })
	if top < 0 || !frames[top].Exact {
		return ""
	}
	code := j.t.CodeReader(1).Of(ctx, j.crashed.Thread, &frames[top])
	for _, l := range code.Lines {
		if l.IsAt {
			return l.Text
		}
	}
	return ""
}

// system writes system_info.
func (j *breakpadJSON) system() {
	y := &j.facts.System
	j.object("system_info", func() {
		j.stringMember("cpu_arch", cmp.Or(processorNames[y.Arch], y.Arch))
		j.numberOrNull("cpu_count", y.Processors > 0, y.Processors)
		j.orNull("cpu_info", y.CPU)
		if y.HasMicrocode {
			j.hexMember("cpu_microcode_version", y.Microcode)
		} else {
			j.null("cpu_microcode_version")
		}
		name := cmp.Or(systemNames[y.OS], y.OS)
		if name == "" && y.Platform != 0 {
			name = fmt.Sprintf("%#08x", y.Platform)
		}
		j.orNull("os", name)
		j.orNull("os_ver", strings.TrimSpace(y.Version+" "+y.Build))
	})
}

// noDebugID is the identifier of a file without a known one.
var noDebugID = strings.Repeat("0", 33)

// modules writes the modules, and the index of the executable.
func (j *breakpadJSON) modules() {
	list := j.t.Modules()
	executable := j.facts.Process.Main
	isMain := func(m *trace.Module) bool {
		return executable != 0 && j.image(m).base <= executable && executable < j.image(m).end
	}
	main := slices.IndexFunc(list, isMain)
	j.numberOrNull("main_module", main >= 0, main)
	j.boolMember("modules_contains_cert_info", false)
	j.list("modules", len(list), func(i int) { j.module(list[i]) })
}

func (j *breakpadJSON) module(m *trace.Module) {
	id, info := m.Symbols, j.t.ModuleInfo(m)
	if id == (trace.SymbolID{}) {
		id = target.ELFSymbols(object.LastPart(m.Path), m.BuildID)
	}
	j.addressMember("base_addr", j.image(m).base)
	j.null("cert_subject")
	j.stringMember("code_id", strings.ToLower(cmp.Or(id.CodeID, hex.EncodeToString(m.BuildID))))
	j.boolMember("corrupt_symbols", info.DebugInfo == trace.DebugInfoUnreadable)
	debugFile := ""
	if id.DebugID != "" { // without an identifier there is no such file
		debugFile = object.LastPart(id.DebugFile)
	}
	j.stringMember("debug_file", debugFile)
	j.stringMember("debug_id", cmp.Or(id.DebugID, noDebugID))
	j.addressMember("end_addr", j.image(m).end)
	j.stringMember("filename", object.LastPart(m.Path))
	j.boolMember("loaded_symbols", info.DebugInfo == trace.DebugInfoFound)
	j.boolMember("missing_symbols", info.DebugInfo == trace.DebugInfoNone || info.DebugInfo == trace.DebugInfoMismatch)
	j.null("symbol_url")
	j.orNull("version", m.Version)
}

// linux writes the members for Linux alone.
func (j *breakpadJSON) linux() {
	j.numberOrNull("linux_memory_map_count", j.facts.Mappings > 0, j.facts.Mappings)
	if d := j.facts.Distribution; d != nil {
		j.object("lsb_release", func() {
			for _, m := range [][2]string{{"codename", d.Codename}, {"description", d.Description}, {"id", d.ID}, {"release", d.Release}} {
				j.stringMember(m[0], m[1])
			}
		})
	} else {
		j.null("lsb_release")
	}
	if limits := j.facts.Limits; limits != nil {
		j.object("proc_limits", func() {
			j.list("limits", len(limits), func(i int) {
				l := &limits[i]
				j.limit("hard", l.Hard)
				j.stringMember("name", l.Name)
				j.limit("soft", l.Soft)
				j.stringMember("unit", cmp.Or(l.Unit, "n/a"))
			})
		})
	} else {
		j.null("proc_limits")
	}
	j.softErrors()
}

func (j *breakpadJSON) limit(name string, n uint64) {
	j.member(name)
	if n == trace.Unlimited {
		j.put(`"unlimited"`)
		return
	}
	j.put(strconv.FormatUint(n, 10))
}

// softErrors writes the JSON that the target's writer left.
func (j *breakpadJSON) softErrors() {
	var b bytes.Buffer
	if len(j.facts.SoftErrors) == 0 || json.Compact(&b, j.facts.SoftErrors) != nil {
		j.null("soft_errors")
		return
	}
	j.member("soft_errors")
	j.put(b.String())
}

// macOS writes the members for macOS alone.
func (j *breakpadJSON) macOS() {
	j.orNull("mac_boot_args", j.facts.BootArguments)
	list := j.facts.Messages
	if len(list) == 0 {
		j.null("mac_crash_info")
		return
	}
	j.object("mac_crash_info", func() {
		j.numberMember("num_records", len(list))
		j.list("records", len(list), func(i int) {
			m := &list[i]
			j.addressOrNull("abort_cause", m.HasAbortCause, m.AbortCause)
			j.orNull("backtrace", m.Backtrace)
			j.addressOrNull("dialog_mode", m.HasThread, m.DialogMode)
			j.orNull("message", m.Text)
			j.orNull("message2", m.TextAgain)
			j.orNull("module", m.Module)
			j.orNull("signature_string", m.Signature)
			j.addressOrNull("thread", m.HasThread, m.Thread)
		})
	})
}
