// SPDX-License-Identifier: Apache-2.0

// Package report writes the results of a walk: as text for people, as JSON for programs.
//
// The package is large because each kind of report (stacks, profiles, call frame information,
// evaluations, notes, intermediate representations, debug streams) has its texts and its JSON
// side by side, all through one Printer.
package report

import (
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// Report is the JSON of `unwindd stack`, for programs that read it: unknown facts
// are absent, lists are always present, addresses are hex. Stacks writes it.
type Report struct {
	Version int      `json:"version"` // StackVersion
	Target  Target   `json:"target"`
	Modules []Module `json:"modules"`
	Threads []Thread `json:"threads"`
	// Globals are the variables that were requested by name; see Stacks.Globals.
	Globals []Variable `json:"globals,omitempty"`
}

// StackVersion is the version of a Report's format (docs/stack.md describes its promises). It
// changes when a member changes its meaning or goes.
const StackVersion = 1

// Target is an opened target.
type Target struct {
	Kind         string `json:"kind"`
	Path         string `json:"path,omitempty"`
	Signal       int    `json:"signal"`
	FaultAddress string `json:"fault_address,omitempty"`
	Crash        *Crash `json:"crash,omitempty"`
	Fact         string `json:"fact,omitempty"` // the event in one line; not of newHead
	// FirstCrash is the crash that a signal handler caught; not of newHead.
	FirstCrash *FirstCrash `json:"first_crash,omitempty"`
	// Deadlocks are lists of the IDs of threads, each of which waits for the next one, and
	// the last one for the first; not of newHead.
	Deadlocks [][]string `json:"deadlocks,omitempty"`
	// Annotations are texts with names that belong to a crash, as a report of macOS has them.
	Annotations []Annotation `json:"annotations,omitempty"`
	Process     *Process     `json:"process,omitempty"` // nil where nothing is known
	// Labels tell the process from others of its job.
	Labels   map[string]string `json:"labels,omitempty"`
	Problems []string          `json:"problems"`
	// Hints name what the frames lack and the flag or server that would give it, the most important first.
	Hints []Hint `json:"hints,omitempty"`
	// Agents, Queues and Dispatches are the devices that executed threads, and their work;
	// nil for a target without such.
	Agents     []Agent    `json:"agents,omitempty"`
	Queues     []Queue    `json:"queues,omitempty"`
	Dispatches []Dispatch `json:"dispatches,omitempty"`
}

// Crash is the reason why the target was kept: as crash reports name it, where the target has
// it.
type Crash struct {
	Name      string `json:"name,omitempty"` // EXCEPTION_ACCESS_VIOLATION_READ, "SIGSEGV / SEGV_MAPERR"
	Address   string `json:"address,omitempty"`
	Thread    string `json:"thread,omitempty"`    // its ID
	Requested bool   `json:"requested,omitempty"` // nothing failed: the dump was requested
	Assertion string `json:"assertion,omitempty"` // the condition that did not hold
	// Sender is the process that sent the signal; nil where the kernel did.
	Sender *Sender `json:"sender,omitempty"`
}

// Annotation is a text with a name.
type Annotation struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// FirstCrash is the crash that a signal handler caught before the process ended.
type FirstCrash struct {
	Signal       int     `json:"signal"`
	Name         string  `json:"name"` // as reports have it: "SIGSEGV / SEGV_MAPERR"
	FaultAddress string  `json:"fault_address,omitempty"`
	Sender       *Sender `json:"sender,omitempty"` // nil where no process sent the signal
	Thread       string  `json:"thread"`           // its ID
	PC           string  `json:"pc"`
	Frame        int     `json:"frame,omitempty"`   // the index of the frame that was interrupted
	Handler      string  `json:"handler,omitempty"` // the function that the kernel called
}

// Sender is a process that sent a signal. PID is 0 for one in another PID namespace.
type Sender struct {
	PID  int32   `json:"pid,omitempty"`
	User *uint32 `json:"uid,omitempty"` // nil where it is not known
}

// Process is the target's facts about its process. Missing ones are zero.
type Process struct {
	PID        int64   `json:"pid,omitempty"`
	Command    string  `json:"command,omitempty"` // the command line, perhaps cut
	Executable string  `json:"executable,omitempty"`
	User       *uint32 `json:"uid,omitempty"`
	Time       string  `json:"time,omitempty"`   // when the target was written, as RFC 3339 has it, in UTC
	Kernel     string  `json:"kernel,omitempty"` // the operating system and its version: "Linux 6.8.0"
	Host       string  `json:"host,omitempty"`   // the name of the machine, or of the container
	// Started is when the process started, Taken when its state was taken: as RFC 3339 has it, in UTC, with as
	// many digits of a second as are known.
	Started string `json:"started,omitempty"`
	Taken   string `json:"taken,omitempty"`
}

// Agent is a device that executes waves.
type Agent struct {
	ID        string `json:"id"`
	Processor string `json:"processor,omitempty"`
}

// Queue is a queue of an agent.
type Queue struct {
	ID    string `json:"id"`
	Agent string `json:"agent,omitempty"`
	Kind  string `json:"kind,omitempty"`
}

// Dispatch is a launch of a kernel that was under way. Grid is its work-items, Group the
// work-items of a work-group, in three dimensions; nil where they are not known.
type Dispatch struct {
	ID     string     `json:"id"`
	Queue  string     `json:"queue,omitempty"`
	Kernel string     `json:"kernel,omitempty"`
	Grid   *[3]uint32 `json:"grid,omitempty"`
	Group  *[3]uint32 `json:"group,omitempty"`

	waves waveCount // in the text only
}

// Module is a code object loaded into the target.
type Module struct {
	ID        int       `json:"id"`
	Path      string    `json:"path"`
	BuildID   string    `json:"build_id,omitempty"`
	DebugID   string    `json:"debug_id,omitempty"` // its key in stores of symbol files
	CodeID    string    `json:"code_id,omitempty"`  // likewise the file itself
	Version   string    `json:"version,omitempty"`  // of its maker
	Arch      string    `json:"arch,omitempty"`
	File      string    `json:"-"` // where the object was read from; in the text only
	Searched  []string  `json:"-"` // debug files that were not taken, and why; in the text only
	DebugFile string    `json:"debug_file,omitempty"`
	DebugInfo string    `json:"debug_info,omitempty"` // found, none, mismatch or unreadable
	Problem   string    `json:"problem,omitempty"`
	Segments  []Segment `json:"segments"`
	isMissing bool      // there is no code object
	isServed  bool      // a symbol file replaces one, and nothing else is wrong
}

// Segment is a part of a module that is mapped as one: Size bytes of the object from the ELF
// virtual address Address on are at Start in the target.
type Segment struct {
	Section string `json:"section,omitempty"`
	Address string `json:"address"`
	Size    string `json:"size"`
	Start   string `json:"start"`
}

// Thread is a thread with its stack, innermost frame first.
type Thread struct {
	ID         string  `json:"id"`
	Name       string  `json:"name,omitempty"`
	Arch       string  `json:"arch,omitempty"`
	Processor  string  `json:"processor,omitempty"`
	Crashed    bool    `json:"crashed"`
	Running    bool    `json:"running,omitempty"`     // it had not stopped when it was dumped
	State      string  `json:"state,omitempty"`       // what it waits for or does, in plain words
	Stop       *Stop   `json:"stop,omitempty"`        // why the thread stopped; nil where nothing is known
	Wave       *Wave   `json:"wave,omitempty"`        // of a wave
	LaunchedBy *Launch `json:"launched_by,omitempty"` // nil where nothing is known
	WaitsFor   *Wait   `json:"waits_for,omitempty"`   // nil where nothing is known
	// Executes is the ID of the goroutine that a thread of the operating system executes,
	// Goroutine describes a thread that is one.
	Executes  string     `json:"executes,omitempty"`
	Goroutine *Goroutine `json:"goroutine,omitempty"`
	// ManagedThread describes a thread that another runtime than Go's schedules.
	ManagedThread *Goroutine `json:"managed_thread,omitempty"`
	// Runtimes are the thread as language runtimes see it, where they tell more than frames.
	Runtimes  []RuntimeThread `json:"runtimes,omitempty"`
	Signature *Signature      `json:"signature,omitempty"` // of a thread that crashed
	// FirstOwnFrame is the index of the innermost function of the program's own, of a thread that
	// crashed; nil: there is none.
	FirstOwnFrame *int      `json:"first_own_frame,omitempty"`
	Frames        []Frame   `json:"frames"`
	LeftOut       []LeftOut `json:"left_out,omitempty"`
	Cycles        []Cycle   `json:"cycles,omitempty"`
	Stopped       Stopped   `json:"stopped"`
}

// LeftOut is physical frames that are not in the list, from an index on.
type LeftOut struct {
	Index  int `json:"index"`
	Frames int `json:"frames"`
}

// Cycle is the frames of a recursion: from one index to another, the same functions again and
// again. Frames is the number of frames of each repetition; 0: they differ.
type Cycle struct {
	First  int `json:"first"`
	Last   int `json:"last"`
	Frames int `json:"frames,omitempty"`
	Times  int `json:"times"`
}

// Stop is the reason why a thread stopped. Stopped is the reason why its stack ends.
type Stop struct {
	Reason  string  `json:"reason"`
	Address string  `json:"address,omitempty"` // that was accessed
	TrapID  *uint32 `json:"trap_id,omitempty"`
	PCExact *bool   `json:"pc_exact,omitempty"` // whether the PC is that of the instruction that stopped it
	// Details are the machine's own facts, in its own words.
	Details []string `json:"details,omitempty"`
}

// Wait is the object that a blocked thread waits for.
type Wait struct {
	Kind    string `json:"kind"` // mutex, rwlock, condition, thread, semaphore, barrier or futex
	Address string `json:"address,omitempty"`
	Name    string `json:"name,omitempty"`    // the variable at the address
	Owner   string `json:"owner,omitempty"`   // the ID of the thread that holds it, or that ends
	Readers int    `json:"readers,omitempty"` // how many threads have a read-write lock for reading
	Timed   bool   `json:"timed,omitempty"`   // the wait ends at a given time
	Why     string `json:"why,omitempty"`     // the owner is not known, for people
}

// Wave is the identity of a wave of an accelerator.
type Wave struct {
	Agent    string     `json:"agent,omitempty"`
	Queue    string     `json:"queue,omitempty"`
	Dispatch string     `json:"dispatch,omitempty"`
	Kernel   string     `json:"kernel,omitempty"`
	Group    *[3]uint32 `json:"group,omitempty"`
	InGroup  *uint32    `json:"in_group,omitempty"` // its number in the group
	Cluster  *[3]uint32 `json:"cluster,omitempty"`  // of groups
}

// Launch is the launcher of a thread, and the evidence for it.
type Launch struct {
	Thread   string `json:"thread,omitempty"` // "" where only the process is known
	Kind     string `json:"kind,omitempty"`
	Evidence string `json:"evidence"`
	// Frame is the index of the first of the launcher's frames, where the stack
	// continues in them.
	Frame *int `json:"frame,omitempty"`
}

// label is the text's name of a module: its path, or its load address. A module has no path
// where the target does not have it, or where the code is in no file.
func (m *Module) label() string {
	switch {
	case m.Path != "":
		return m.Path
	case len(m.Segments) > 0:
		return "module at " + m.Segments[0].Start
	}
	return fmt.Sprintf("module %d", m.ID)
}

// short is the module's name beside a frame: the base name of its path. A device's runtime
// names code by a URI of a part of a file, or of memory (file://PATH#offset=N&size=N).
func (m *Module) short() string {
	label := m.label()
	scheme, rest, isURI := strings.Cut(label, "://")
	switch name, _, _ := strings.Cut(rest, "#"); {
	case !isURI:
		return path.Base(label)
	case scheme == "memory":
		return "code object in memory"
	default:
		return "code object of " + path.Base(name)
	}
}

// Frame is a physical frame or a call inlined into one. Index counts both.
type Frame struct {
	Index          int               `json:"index"`
	Thread         string            `json:"thread"`
	PC             string            `json:"pc"`
	PCExact        *bool             `json:"pc_exact,omitempty"` // false: the thread stopped at an instruction before
	CFA            string            `json:"cfa,omitempty"`
	CFASpace       string            `json:"cfa_space,omitempty"`
	FoundBy        string            `json:"found_by"`
	Managed        *Managed          `json:"managed,omitempty"`        // of a frame of a language runtime
	BehindManaged  bool              `json:"behind_managed,omitempty"` // a managed frame further in stands for it
	RestsOnGuess   bool              `json:"rests_on_guess,omitempty"` // a frame further in is a guess
	PassedOver     int               `json:"passed_over,omitempty"`    // nearer words of the stack that may be return addresses too
	Module         *int              `json:"module,omitempty"`
	ModuleOffset   string            `json:"module_offset,omitempty"`
	Function       string            `json:"function,omitempty"`
	ShortName      string            `json:"short_name,omitempty"` // for people, where it differs
	LinkageName    string            `json:"linkage_name,omitempty"`
	FunctionOffset string            `json:"function_offset,omitempty"`
	File           string            `json:"file,omitempty"`
	Line           int               `json:"line,omitempty"`
	Column         int               `json:"column,omitempty"`
	NameFrom       string            `json:"name_from,omitempty"`  // "report": the function and its line are as a report of a crash has them
	LineFrom       string            `json:"line_from,omitempty"`  // see nameSources
	ScopeFrom      string            `json:"scope_from,omitempty"` // likewise
	EqualFunctions int               `json:"equal_functions,omitempty"`
	Source         *Source           `json:"source,omitempty"` // where it was requested and exists
	Code           *[]CodeLine       `json:"code,omitempty"`   // of a physical frame; nil: not requested
	CodeProblem    string            `json:"code_problem,omitempty"`
	Inlined        bool              `json:"inlined"`
	SignalFrame    bool              `json:"signal_frame"`
	Registers      map[string]string `json:"registers,omitempty"`
	Locals         *[]Variable       `json:"locals,omitempty"` // the variables in scope; nil: not requested
	Lanes          []Lanes           `json:"lanes"`            // of the physical frame of a wave
}

// Managed is the language runtime of a frame. A native frame is an activation of the machine, of
// code that the runtime made; others are the runtime's alone.
type Managed struct {
	Runtime string `json:"runtime"`
	Kind    string `json:"kind,omitempty"`
	Native  bool   `json:"native,omitempty"`
}

// Variable is a variable with its value, or a part of one: a member, an element, the target
// of a pointer.
type Variable struct {
	Name         string     `json:"name"`
	Kind         string     `json:"kind,omitempty"`   // of a variable: parameter, local, static, constant, global; of a part: base, variant, pointee, entry
	Module       *int       `json:"module,omitempty"` // of a global
	Line         int        `json:"line,omitempty"`
	Artificial   bool       `json:"artificial,omitempty"`
	Shadowed     bool       `json:"shadowed,omitempty"`
	MemorySpace  string     `json:"memory_space,omitempty"` // of the source language
	Type         string     `json:"type,omitempty"`
	Value        *string    `json:"value,omitempty"` // absent for a value with parts; of a container a summary
	Status       string     `json:"status"`
	Problem      string     `json:"problem,omitempty"`
	Address      string     `json:"address,omitempty"`
	AddressSpace string     `json:"address_space,omitempty"` // absent for the default one
	Children     []Variable `json:"children,omitempty"`
	More         uint64     `json:"more,omitempty"` // children that the limits left out
	Deep         bool       `json:"deep,omitempty"` // children lie deeper than the limit
	Location     string     `json:"location,omitempty"`
	Lanes        string     `json:"lanes,omitempty"` // of a wave: the lanes with this value
}

// Source is lines around a frame's line.
type Source struct {
	First   int      `json:"first"` // the number of the first line
	Lines   []string `json:"lines"`
	Warning string   `json:"warning,omitempty"` // why they may differ from the compiled ones
}

// CodeLine is an instruction around the PC of a frame.
type CodeLine struct {
	PC      string `json:"pc"`
	Bytes   string `json:"bytes"` // in hexadecimal, as in memory
	Text    string `json:"text"`
	Current bool   `json:"current"` // it is at the PC, or is the call that returns there
}

// Lanes is the lanes of a frame in one state at one place.
type Lanes struct {
	Lanes  string      `json:"lanes"` // "0-3,7"
	State  string      `json:"state"`
	PC     string      `json:"pc,omitempty"`
	Frames []LaneFrame `json:"frames"` // innermost first, the last is the physical function
}

// LaneFrame is a function where lanes are, or a call inlined into one.
type LaneFrame struct {
	Function    string `json:"function,omitempty"`
	ShortName   string `json:"short_name,omitempty"`
	LinkageName string `json:"linkage_name,omitempty"`
	File        string `json:"file,omitempty"`
	Line        int    `json:"line,omitempty"`
	Column      int    `json:"column,omitempty"`
	LineFrom    string `json:"line_from,omitempty"`
	ScopeFrom   string `json:"scope_from,omitempty"`
	Inlined     bool   `json:"inlined"`
}

// Stopped is the reason why a stack ends.
type Stopped struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

func address(a uint64) string { return fmt.Sprintf("0x%x", a) }

func newModule(m *trace.Module, info trace.ModuleInfo, debug trace.DebugInfo) Module {
	out := Module{
		ID: m.ID, Path: m.Path, BuildID: hex.EncodeToString(m.BuildID), Arch: m.Arch,
		DebugID: m.Symbols.DebugID, CodeID: m.Symbols.CodeID, Version: m.Version,
		File: m.File, DebugFile: info.DebugFile, DebugInfo: string(debug), Problem: strings.Join(info.Problems, "; "), Searched: info.Searched, isMissing: info.IsMissing, isServed: info.IsMissing && info.DebugFile != "" && len(info.Problems) == 1,
		Segments: []Segment{},
	}
	for _, s := range m.Segments {
		out.Segments = append(out.Segments, Segment{s.Section, address(s.Address), address(s.Size), address(s.Start)})
	}
	return out
}

// spaceNames names an address space by the architecture of a thread.
type spaceNames func(thread *trace.Thread, space locexpr.AddressSpace) string

// ofCFA is the name of the address space of a frame's CFA; "" for the default one.
func (name spaceNames) ofCFA(thread *trace.Thread, f *trace.Frame) string {
	if !f.HasCFA || f.CFASpace == locexpr.DefaultSpace {
		return ""
	}
	return name(thread, f.CFASpace)
}

// fromSourceModule marks a chain of inlined calls that was concluded from the source module,
// which is a guess.
const fromSourceModule = "source-module"

// equalFunctions is the least number of functions that share the code of one; 0: no other one
// is known.
func equalFunctions(s *trace.Symbol) int {
	if s.Equals == trace.SeveralEqual {
		return 2
	}
	return s.Equals
}

// nameSources names the sources of a position and of its inlined calls, where they are not
// debug information of the code.
func nameSources(s *trace.Symbol) (line, scope string) {
	if s.LineByAssembly {
		line = "assembly"
	}
	if s.ScopeBySource {
		scope = fromSourceModule
	}
	return line, scope
}

// offset is the distance of pc from the start of its function. A trampoline can be found one
// byte before its symbol.
func offset(pc, start uint64) string {
	if pc < start {
		return "-" + address(start-pc)
	}
	return address(pc - start)
}
