// Package report says what a walk found: as text for people, as JSON for
// programs.
//
// The package is large because each kind of report (stacks, profiles, call frame
// information, evaluations, notes, intermediate representations, debug streams) has its
// texts and its JSON side by side, all through one Printer.
package report

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/symbol"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
)

// Report is the stacks of a target. Its JSON is that of `unwindd stack`:
// unknown facts are absent, lists are always present, addresses are hex.
type Report struct {
	Target  Target   `json:"target"`
	Modules []Module `json:"modules"`
	Threads []Thread `json:"threads"`

	machine uint16 // the ELF machine of the process, whose signals these are
}

// Target is what was opened.
type Target struct {
	Kind         string   `json:"kind"`
	Path         string   `json:"path,omitempty"`
	Signal       int      `json:"signal"`
	FaultAddress string   `json:"-"` // in the text only
	Problems     []string `json:"problems"`
}

// Module is a code object loaded into the target.
type Module struct {
	ID        int       `json:"id"`
	Path      string    `json:"path"`
	BuildID   string    `json:"build_id,omitempty"`
	Arch      string    `json:"arch,omitempty"`
	File      string    `json:"-"` // where the object was read from; in the text only
	Searched  []string  `json:"-"` // debug files that were not taken, and why; in the text only
	DebugFile string    `json:"debug_file,omitempty"`
	DebugInfo string    `json:"debug_info,omitempty"` // found, none, mismatch or unreadable
	Problem   string    `json:"problem,omitempty"`
	Segments  []Segment `json:"segments"`
}

// Segment is a part of a module that is mapped as one: Size bytes of the
// object from the ELF virtual address Address on are at Start in the target.
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
	Stop       *Stop   `json:"stop,omitempty"`        // why the thread stopped; nil where nothing is known
	Wave       *Wave   `json:"wave,omitempty"`        // of a wave
	LaunchedBy *Launch `json:"launched_by,omitempty"` // nil where nothing is known
	Frames     []Frame `json:"frames"`
	Stopped    Stopped `json:"stopped"`

	// In the text only: the signal of the thread itself, how many lanes it has,
	// LaunchedBy and the launches before it, and which of these Stopped is about
	// (0: the thread itself, n: the n-th launch).
	Signal    int       `json:"-"`
	LaneCount uint32    `json:"-"`
	Launches  []*Launch `json:"-"`
	StoppedIn int       `json:"-"`
	// EndAssumed says that the last frame is taken for the outermost one only
	// because its return address is 0.
	EndAssumed bool `json:"-"`
}

// Stop is why a thread stopped. Why its stack ends is Stopped.
type Stop struct {
	Reason  string  `json:"reason"`
	Address string  `json:"address,omitempty"` // what was accessed
	TrapID  *uint32 `json:"trap_id,omitempty"`
	PCExact *bool   `json:"pc_exact,omitempty"` // whether the PC is that of the instruction that stopped it
}

// Wave is the identity of a wave of an accelerator.
type Wave struct {
	Agent    string     `json:"agent,omitempty"`
	Queue    string     `json:"queue,omitempty"`
	Dispatch string     `json:"dispatch,omitempty"`
	Kernel   string     `json:"kernel,omitempty"`
	Group    *[3]uint32 `json:"group,omitempty"`
	InGroup  *uint32    `json:"in_group,omitempty"` // its number in the group
}

// Launch is what launched a thread, and how that is known.
type Launch struct {
	Thread   string `json:"thread"`
	Kind     string `json:"kind,omitempty"`
	Evidence string `json:"evidence"`
	// Frame is the index of the first of the launcher's frames, where the stack
	// continues in them.
	Frame *int `json:"frame,omitempty"`

	Problem string `json:"-"` // why the stack does not continue there; in the text only
}

// label is what the text calls a module: its path, or where it is loaded. A
// module has no path where the target does not say it, or where the code is in
// no file.
func (m *Module) label() string {
	switch {
	case m.Path != "":
		return m.Path
	case len(m.Segments) > 0:
		return "module at " + m.Segments[0].Start
	}
	return fmt.Sprintf("module %d", m.ID)
}

// Frame is a physical frame or a call inlined into one. Index counts both.
type Frame struct {
	Index          int                    `json:"index"`
	Thread         string                 `json:"thread"`
	PC             string                 `json:"pc"`
	PCExact        *bool                  `json:"pc_exact,omitempty"` // false: the thread stopped at an instruction before
	CFA            string                 `json:"cfa,omitempty"`
	CFASpace       string                 `json:"cfa_space,omitempty"`
	FoundBy        string                 `json:"found_by"`
	RestsOnGuess   bool                   `json:"rests_on_guess,omitempty"` // a frame further in is a guess
	Module         *int                   `json:"module,omitempty"`
	ModuleOffset   string                 `json:"module_offset,omitempty"`
	Function       string                 `json:"function,omitempty"`
	LinkageName    string                 `json:"linkage_name,omitempty"`
	FunctionOffset string                 `json:"function_offset,omitempty"`
	File           string                 `json:"file,omitempty"`
	Line           int                    `json:"line,omitempty"`
	Column         int                    `json:"column,omitempty"`
	LineFrom       string                 `json:"line_from,omitempty"`  // see nameSources
	ScopeFrom      string                 `json:"scope_from,omitempty"` // likewise
	Inlined        bool                   `json:"inlined"`
	SignalFrame    bool                   `json:"signal_frame"`
	Registers      map[string]string      `json:"registers,omitempty"`
	Listed         []engine.RegisterValue `json:"-"`     // Registers by number; in the text only
	Lanes          []Lanes                `json:"lanes"` // of the physical frame of a wave
}

// Lanes is lanes of a frame that are in one state at one place.
type Lanes struct {
	Lanes  string      `json:"lanes"` // "0-3,7"
	State  string      `json:"state"`
	PC     string      `json:"pc,omitempty"`
	Frames []LaneFrame `json:"frames"` // innermost first, the last is the physical function
}

// LaneFrame is a function where lanes are, or a call inlined into one.
type LaneFrame struct {
	Function    string `json:"function,omitempty"`
	LinkageName string `json:"linkage_name,omitempty"`
	File        string `json:"file,omitempty"`
	Line        int    `json:"line,omitempty"`
	Column      int    `json:"column,omitempty"`
	LineFrom    string `json:"line_from,omitempty"`
	ScopeFrom   string `json:"scope_from,omitempty"`
	Inlined     bool   `json:"inlined"`
}

// Stopped is why a stack ends.
type Stopped struct {
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// New collects the report of walked stacks.
func New(t *engine.Target, stacks []*engine.Stack) *Report {
	info := t.Info()
	r := &Report{
		Target:  Target{Kind: string(info.Kind), Path: info.Path, Signal: info.Signal, Problems: t.Problems()},
		Modules: []Module{},
		Threads: []Thread{},
		machine: info.Machine,
	}
	if info.HasFaultAddress {
		r.Target.FaultAddress = address(info.FaultAddress)
	}
	if r.Target.Problems == nil {
		r.Target.Problems = []string{}
	}
	for _, m := range t.Modules() {
		r.Modules = append(r.Modules, newModule(m, t.ModuleInfo(m)))
	}
	for _, s := range stacks {
		r.Threads = append(r.Threads, newThread(t, s))
	}
	return r
}

func address(a uint64) string { return fmt.Sprintf("0x%x", a) }

func newModule(m *target.Module, info engine.ModuleInfo) Module {
	out := Module{
		ID: m.ID, Path: m.Path, BuildID: hex.EncodeToString(m.BuildID), Arch: m.Arch,
		File: m.File, DebugFile: info.DebugFile, DebugInfo: string(info.DebugInfo), Problem: strings.Join(info.Problems, "; "), Searched: info.Searched,
		Segments: []Segment{},
	}
	for _, s := range m.Segments {
		out.Segments = append(out.Segments, Segment{s.Section, address(s.Address), address(s.Size), address(s.Start)})
	}
	return out
}

func newThread(of *engine.Target, s *engine.Stack) Thread {
	t := Thread{
		ID: s.Thread.ID, Name: s.Thread.Name, Arch: s.Thread.Arch, Processor: s.Thread.Processor,
		Crashed: s.Thread.Crashed, Frames: []Frame{}, Signal: s.Thread.Signal, LaneCount: s.Lanes,
		Stopped: Stopped{string(s.Stopped.Reason), s.Stopped.Detail}, EndAssumed: s.EndAssumed,
	}
	if s := s.Thread.Stop; s != nil {
		t.Stop = &Stop{Reason: s.Reason}
		if s.HasAddress {
			t.Stop.Address = address(s.Address)
		}
		if s.HasTrapID {
			t.Stop.TrapID = &s.TrapID
		}
		if s.HasPCExact {
			t.Stop.PCExact = &s.PCExact
		}
	}
	if w := s.Thread.Wave; w != nil {
		t.Wave = &Wave{Agent: w.Agent, Queue: w.Queue, Dispatch: w.Dispatch, Kernel: w.Kernel}
		if w.HasGroup {
			t.Wave.Group = &w.Group
		}
		if w.HasInGroup {
			t.Wave.InGroup = &w.InGroup
		}
	}
	if l := s.Thread.LaunchedBy; l != nil {
		t.LaunchedBy = &Launch{Thread: l.Thread, Kind: l.Kind, Evidence: l.Evidence}
	}
	for i := range s.Frames {
		f := &s.Frames[i]
		t.Frames = appendFrames(t.Frames, t.ID, f, spaceOfCFA(of, s.Thread, f))
	}
	t.join(of, s.Launchers)
	t.qualify()
	return t
}

// firstGuess is the first physical frame that is a guess; nil without one.
func (t *Thread) firstGuess() *Frame {
	for i := range t.Frames {
		if f := &t.Frames[i]; !f.Inlined && engine.FoundBy(f.FoundBy).IsGuess() {
			return f
		}
	}
	return nil
}

// qualify says of a stack that ends in an outermost frame that it is complete only
// if its guesses are right.
func (t *Thread) qualify() {
	if g := t.firstGuess(); g != nil && t.Stopped.Reason == string(engine.StopOutermost) {
		t.Stopped.Detail += fmt.Sprintf(", if frame %d, a guess, and those after it are right", g.Index)
	}
}

// isWhole says whether rules or the ABI say that the last frame is the outermost
// one, and no frame is a guess.
func (t *Thread) isWhole() bool {
	return t.Stopped.Reason == string(engine.StopOutermost) && !t.EndAssumed && t.firstGuess() == nil
}

// spaceOfCFA is the name of the address space of a frame's CFA; "" where that is
// the default one.
func spaceOfCFA(of *engine.Target, thread *target.Thread, f *engine.Frame) string {
	if !f.HasCFA || f.CFASpace == locexpr.DefaultSpace {
		return ""
	}
	return of.SpaceName(thread, f.CFASpace)
}

// join appends the frames of the launchers to a stack. Where the stack ends in
// an outermost frame, its end is from then on that of the last launcher.
func (t *Thread) join(of *engine.Target, launchers []engine.Launcher) {
	for i := range launchers {
		l := &launchers[i]
		launch := t.LaunchedBy
		if i > 0 || launch == nil {
			launch = &Launch{Thread: l.Launch.Thread, Kind: l.Kind, Evidence: l.Evidence}
		}
		launch.Problem = l.Problem
		if len(l.Frames) > 0 {
			first := len(t.Frames)
			launch.Frame = &first
		}
		t.Launches = append(t.Launches, launch)
		for j := range l.Frames {
			f := &l.Frames[j]
			t.Frames = appendFrames(t.Frames, l.Launch.Thread, f, spaceOfCFA(of, l.Thread, f))
		}
		if t.Stopped.Reason == string(engine.StopOutermost) && l.Stopped.Reason != "" {
			t.Stopped, t.EndAssumed = Stopped{string(l.Stopped.Reason), l.Stopped.Detail}, false
			t.StoppedIn = i + 1
		}
	}
}

// appendFrames appends the calls inlined into a physical frame, innermost
// first, and the frame itself. cfaSpace is the name of the address space of its
// CFA, where that is not the default one.
func appendFrames(dst []Frame, thread string, f *engine.Frame, cfaSpace string) []Frame {
	physical := Frame{
		Thread: thread, PC: address(f.PC), FoundBy: string(f.FoundBy), SignalFrame: f.SignalFrame, RestsOnGuess: f.RestsOnGuess,
		Lanes: []Lanes{},
	}
	if f.Imprecise {
		physical.PCExact = new(bool)
	}
	if f.HasCFA {
		physical.CFA, physical.CFASpace = address(f.CFA), cfaSpace
	}
	if f.Module != nil {
		id := f.Module.ID
		physical.Module = &id
		physical.ModuleOffset = address(f.ModuleOffset)
	}
	for i, s := range f.Symbols {
		if i == len(f.Symbols)-1 {
			break
		}
		inlined := physical
		inlined.Inlined, inlined.SignalFrame = true, false
		inlined.name(s)
		inlined.Index = len(dst)
		dst = append(dst, inlined)
	}
	if n := len(f.Symbols); n > 0 {
		s := f.Symbols[n-1]
		physical.name(s)
		if s.HasStart {
			physical.FunctionOffset = offset(f.ModuleOffset, s.Start)
		}
	}
	if len(f.Registers) > 0 {
		physical.Registers = map[string]string{}
		physical.Listed = f.Registers
		for _, r := range f.Registers {
			physical.Registers[r.Name] = address(r.Value)
		}
	}
	physical.Index = len(dst)
	for i := range f.Lanes {
		physical.Lanes = append(physical.Lanes, newLanes(&f.Lanes[i]))
	}
	return append(dst, physical)
}

func newLanes(g *engine.LaneGroup) Lanes {
	l := Lanes{Lanes: g.Lanes.String(), State: string(g.State), Frames: []LaneFrame{}}
	if g.HasPC {
		l.PC = address(g.PC)
	}
	for i := range g.Symbols {
		s := &g.Symbols[i]
		f := LaneFrame{
			Function: s.Function, LinkageName: s.LinkageName, File: s.File, Line: s.Line, Column: s.Column,
			Inlined: i < len(g.Symbols)-1,
		}
		f.LineFrom, f.ScopeFrom = nameSources(s)
		l.Frames = append(l.Frames, f)
	}
	return l
}

// fromSourceModule marks a chain of inlined calls that was concluded from the
// source module, which is a guess.
const fromSourceModule = "source-module"

// nameSources says where a position is from and where the calls that were inlined
// are from, where that is not debug information of the code.
func nameSources(s *symbol.Frame) (line, scope string) {
	if s.LineByAssembly {
		line = "assembly"
	}
	if s.ScopeBySource {
		scope = fromSourceModule
	}
	return line, scope
}

func (f *Frame) name(s symbol.Frame) {
	f.Function, f.LinkageName = s.Function, s.LinkageName
	f.File, f.Line, f.Column = s.File, s.Line, s.Column
	f.LineFrom, f.ScopeFrom = nameSources(&s)
}

// offset is how far pc is into its function. A trampoline can be found one
// byte before its symbol.
func offset(pc, start uint64) string {
	if pc < start {
		return "-" + address(start-pc)
	}
	return address(pc - start)
}
