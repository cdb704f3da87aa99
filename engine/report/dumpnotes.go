// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/target/minidump"
	"github.com/unwindd/unwindd/engine/object"
)

// Minidump is the output of `dump notes` for a minidump: all of it except the bytes of its
// memory. The members have the names of the format's structures, in lower case.
type Minidump struct {
	File       string          `json:"file"`
	Type       string          `json:"type"` // minidump
	Header     dumpHeader      `json:"header"`
	Streams    []dumpStream    `json:"streams"`
	System     *dumpSystem     `json:"system,omitempty"`
	Misc       *dumpMisc       `json:"misc,omitempty"`
	Exceptions []dumpException `json:"exceptions"`
	Assertion  *dumpAssertion  `json:"assertion,omitempty"`
	Threads    []dumpThread    `json:"threads"`
	Modules    []dumpModule    `json:"modules"`
	Unloaded   []dumpUnloaded  `json:"unloaded_modules"`
	Memory     []dumpRange     `json:"memory"`
	MemoryInfo []dumpPages     `json:"memory_info"`
	Handles    []dumpHandle    `json:"handles"`
	Linux      *dumpLinux      `json:"linux,omitempty"`
	Crashpad   *dumpCrashpad   `json:"crashpad,omitempty"`
	Breakpad   *dumpBreakpad   `json:"breakpad,omitempty"`
	Comments   []string        `json:"comments,omitempty"`
	SoftErrors string          `json:"soft_errors,omitempty"` // JSON
	Problems   []string        `json:"problems"`
}

type dumpHeader struct {
	Version   string   `json:"version"`
	Checksum  string   `json:"checksum"`
	Time      string   `json:"time"`
	Flags     string   `json:"flags"`
	FlagNames []string `json:"flag_names"`
}

type dumpStream struct {
	Type   string `json:"type"`
	Number uint32 `json:"number"`
	Offset string `json:"offset"`
	Size   uint64 `json:"size"`
}

type dumpSystem struct {
	OS          string `json:"os,omitempty"`
	Platform    uint32 `json:"platform"`
	Version     string `json:"version"`
	Build       string `json:"build,omitempty"` // service pack, or what uname says
	Arch        string `json:"arch,omitempty"`
	Processor   uint16 `json:"processor_architecture"`
	Processors  uint8  `json:"processors"`
	CPU         string `json:"cpu,omitempty"`
	Vendor      string `json:"cpu_vendor,omitempty"`
	ProductType uint8  `json:"product_type"`
	SuiteMask   string `json:"suite_mask"`
}

type dumpMisc struct {
	Flags       string `json:"flags"`
	ProcessID   uint32 `json:"process_id,omitempty"`
	CreateTime  string `json:"create_time,omitempty"`
	UserTime    uint32 `json:"user_time,omitempty"`   // seconds
	KernelTime  uint32 `json:"kernel_time,omitempty"` // seconds
	MaxMHz      uint32 `json:"processor_max_mhz,omitempty"`
	CurrentMHz  uint32 `json:"processor_current_mhz,omitempty"`
	Integrity   string `json:"integrity_level,omitempty"`
	TimeZone    string `json:"time_zone,omitempty"`
	BuildString string `json:"build_string,omitempty"`
	DebugBuild  string `json:"debug_build_string,omitempty"`
	XState      string `json:"xstate_features,omitempty"`
}

type dumpException struct {
	Thread     uint32   `json:"thread"`
	Name       string   `json:"name"` // as crash reports have it
	Meaning    string   `json:"meaning"`
	Code       string   `json:"code"`
	Flags      string   `json:"flags"`
	Record     string   `json:"record,omitempty"`
	Address    string   `json:"address"`
	Parameters []string `json:"parameters"`
	Said       string   `json:"description,omitempty"` // in the words of what wrote the dump
	dumpContext
}

type dumpAssertion struct {
	Expression string `json:"expression"`
	Function   string `json:"function"`
	File       string `json:"file"`
	Line       uint32 `json:"line"`
	Type       uint32 `json:"type"`
}

// dumpContext is the registers of a thread. Registers of 64 bits at most are numbers, others
// bytes, the lowest one first.
type dumpContext struct {
	Arch      string            `json:"arch,omitempty"`
	Context   string            `json:"context_flags,omitempty"`
	Registers map[string]string `json:"registers,omitempty"`
	Problem   string            `json:"problem,omitempty"` // why there are none

	order []string // of Registers
}

type dumpThread struct {
	ID           uint32     `json:"id"`
	Name         string     `json:"name,omitempty"`
	SuspendCount uint32     `json:"suspend_count"`
	Priority     string     `json:"priority"` // class and priority
	TEB          string     `json:"teb"`
	Stack        *dumpRange `json:"stack,omitempty"`
	Start        string     `json:"start_address,omitempty"`
	LastError    string     `json:"last_error,omitempty"`
	dumpContext
}

type dumpModule struct {
	Base        string           `json:"base"`
	Size        string           `json:"size"`
	Name        string           `json:"name"`
	Version     string           `json:"version,omitempty"`
	Checksum    string           `json:"checksum"`
	Timestamp   string           `json:"timestamp"`
	Format      string           `json:"codeview,omitempty"`
	DebugFile   string           `json:"debug_file,omitempty"`
	DebugID     string           `json:"debug_id,omitempty"`
	CodeID      string           `json:"code_id,omitempty"`
	BuildID     string           `json:"build_id,omitempty"`
	Annotations []dumpAnnotation `json:"annotations,omitempty"`
}

type dumpUnloaded struct {
	Base      string `json:"base"`
	Size      string `json:"size"`
	Name      string `json:"name"`
	Checksum  string `json:"checksum"`
	Timestamp string `json:"timestamp"`
}

type dumpRange struct {
	Start  string `json:"start"`
	Size   string `json:"size"`
	Offset string `json:"offset"`
}

type dumpPages struct {
	Base       string `json:"base"`
	Size       string `json:"size"`
	State      string `json:"state"`
	Protection string `json:"protection"`
	Type       string `json:"type"`
	Allocation string `json:"allocation_base"`
}

type dumpHandle struct {
	Handle       string `json:"handle"`
	Type         string `json:"type,omitempty"`
	Name         string `json:"name,omitempty"`
	Attributes   string `json:"attributes"`
	Access       string `json:"granted_access"`
	HandleCount  uint32 `json:"handle_count"`
	PointerCount uint32 `json:"pointer_count"`
}

type dumpLinux struct {
	CommandLine  []string      `json:"command_line,omitempty"`
	Environment  []string      `json:"environment,omitempty"`
	Auxv         []dumpAux     `json:"auxv,omitempty"`
	Maps         string        `json:"maps,omitempty"`
	CPUInfo      string        `json:"cpuinfo,omitempty"`
	Status       string        `json:"status,omitempty"`
	Distribution string        `json:"lsb_release,omitempty"`
	Limits       string        `json:"limits,omitempty"`
	Libraries    []dumpLibrary `json:"libraries,omitempty"` // of the dynamic linker's list
}

type dumpAux struct {
	Type  uint64 `json:"type"`
	Value string `json:"value"`
}

type dumpLibrary struct {
	Name string `json:"name"`
	Bias string `json:"bias"`
}

type dumpCrashpad struct {
	Version     uint32           `json:"version"`
	ReportID    string           `json:"report_id"`
	ClientID    string           `json:"client_id"`
	AddressMask string           `json:"address_mask,omitempty"`
	Annotations []dumpAnnotation `json:"annotations"`
}

type dumpAnnotation struct {
	Name  string `json:"name,omitempty"`
	Type  uint16 `json:"type"`
	Text  string `json:"text,omitempty"`
	Value string `json:"value,omitempty"` // of another type than text, in hexadecimal
}

type dumpBreakpad struct {
	DumpThread       *uint32 `json:"dump_thread,omitempty"`
	RequestingThread *uint32 `json:"requesting_thread,omitempty"`
}

// IsMinidump reports whether a file begins as minidumps do. A file that is truncated meanwhile
// is none.
func IsMinidump(path string) (is bool) {
	m, err := object.Map(path)
	if err != nil {
		return false
	}
	defer m.Close()
	_ = object.Guard(func() error { is = minidump.Is(m.Data()); return nil })
	return is
}

// OpenMinidump opens a minidump. The caller closes the file.
func OpenMinidump(path string) (*Minidump, io.Closer, error) {
	d, err := minidump.Open(path)
	if err != nil {
		return nil, nil, err
	}
	var m *Minidump
	err = object.Guard(func() error {
		m = NewMinidump(d)
		return nil
	})
	if err != nil {
		_ = d.Close()
		return nil, nil, err
	}
	return m, d, nil
}

// NewMinidump lists the contents of a dump. It is to be called inside object.Guard.
func NewMinidump(d *minidump.Dump) *Minidump {
	m := &Minidump{File: d.Path, Type: "minidump", Problems: d.Problems()}
	if m.Problems == nil {
		m.Problems = []string{}
	}
	h := &d.Header
	m.Header = dumpHeader{hexNumber(uint64(h.Version)), hexNumber(uint64(h.Checksum)), unixTime(h.Time), hexNumber(h.Flags), flagNames(h.Flags, dumpFlags)}
	m.Streams = listOf(d.Streams, func(s *minidump.Stream) dumpStream {
		return dumpStream{s.Type.String(), uint32(s.Type), hexNumber(s.Offset), s.Size}
	})
	m.addProcess(d)
	m.addThreads(d)
	m.addModules(d)
	m.addMemory(d)
	m.Handles = listOf(d.Handles, func(h *minidump.Handle) dumpHandle {
		return dumpHandle{hexNumber(h.Handle), h.Type, h.Object, hexNumber(uint64(h.Attributes)), hexNumber(uint64(h.GrantedAccess)), h.HandleCount, h.PointerCount}
	})
	m.addLinux(d)
	m.addCrashpad(d)
	for _, c := range []string{d.CommentA, d.CommentW} {
		if c != "" {
			m.Comments = append(m.Comments, c)
		}
	}
	return m
}

// listOf makes a list of another one; it is never nil.
func listOf[T, U any](source []T, one func(*T) U) []U {
	list := make([]U, len(source))
	for i := range source {
		list[i] = one(&source[i])
	}
	return list
}

// unixTime is a time in seconds since 1970; "" of 0.
func unixTime(seconds uint32) string {
	if seconds == 0 {
		return ""
	}
	return time.Unix(int64(seconds), 0).UTC().Format(time.RFC3339)
}

// maxDumpText bounds the texts of /proc that are written.
const maxDumpText = 1 << 20

func dumpText(b []byte) string {
	return strings.ToValidUTF8(strings.TrimRight(string(b[:min(len(b), maxDumpText)]), "\x00"), "\ufffd")
}

func (m *Minidump) addProcess(d *minidump.Dump) {
	facts := d.Facts()
	m.SoftErrors = string(facts.SoftErrors)
	if s := d.System; s != nil {
		m.System = &dumpSystem{
			OS: s.OS(), Platform: s.Platform, Version: facts.System.Version, Build: facts.System.Build, Arch: s.Arch(),
			Processor: s.Architecture, Processors: s.Processors, CPU: facts.System.CPU, Vendor: s.Vendor,
			ProductType: s.ProductType, SuiteMask: hexNumber(uint64(s.SuiteMask)),
		}
	}
	if s := d.Misc; s != nil {
		m.Misc = &dumpMisc{
			Flags: hexNumber(uint64(s.Flags)), ProcessID: s.ProcessID, CreateTime: unixTime(s.CreateTime), UserTime: s.UserTime,
			KernelTime: s.KernelTime, MaxMHz: s.Power.MaxMHz, CurrentMHz: s.Power.CurrentMHz,
			BuildString: s.BuildString, DebugBuild: s.DebugBuildString,
		}
		if s.Flags&minidump.MiscIntegrity != 0 {
			m.Misc.Integrity = hexNumber(uint64(s.IntegrityLevel))
		}
		if s.Flags&minidump.MiscTimeZone != 0 {
			m.Misc.TimeZone = fmt.Sprintf("%s, UTC is %d minutes later", s.TimeZone.StandardName, s.TimeZone.Bias)
		}
		if s.XStateFeatures != 0 {
			m.Misc.XState = hexNumber(s.XStateFeatures)
		}
	}
	if a := d.Assertion; a != nil {
		m.Assertion = &dumpAssertion{a.Expression, a.Function, a.File, a.Line, a.Type}
	}
	if b := d.Breakpad; b != nil {
		m.Breakpad = &dumpBreakpad{}
		if b.HasDumpThreadID {
			m.Breakpad.DumpThread = &b.DumpThreadID
		}
		if b.HasRequestingThreadID {
			m.Breakpad.RequestingThread = &b.RequestingThreadID
		}
	}
}

func (m *Minidump) addThreads(d *minidump.Dump) {
	m.Exceptions = listOf(d.Exceptions, func(x *minidump.Exception) dumpException {
		e := dumpException{
			Thread: x.ThreadID, Name: d.CrashName(x), Meaning: d.Reason(x).String(), Code: hexNumber(uint64(x.Code)), Flags: hexNumber(uint64(x.Flags)),
			Address: hexNumber(x.Address), Said: x.Description, Parameters: []string{}, dumpContext: newDumpContext(d, &x.Context),
		}
		if x.Record != 0 {
			e.Record = hexNumber(x.Record)
		}
		for _, p := range x.Parameters {
			e.Parameters = append(e.Parameters, hexNumber(p))
		}
		return e
	})
	errors := d.Facts().LastErrors
	m.Threads = listOf(d.Threads, func(t *minidump.Thread) dumpThread {
		out := dumpThread{
			ID: t.ID, Name: t.Name, SuspendCount: t.SuspendCount, Priority: fmt.Sprintf("%#x/%#x", t.PriorityClass, t.Priority),
			TEB: hexNumber(t.TEB), LastError: errors[fmt.Sprint(t.ID)], dumpContext: newDumpContext(d, &t.Context),
		}
		if t.Stack.Size > 0 {
			stack := newDumpRange(&t.Stack)
			out.Stack = &stack
		}
		if t.Info != nil {
			out.Start = hexNumber(t.Info.StartAddress)
		}
		return out
	})
}

// newDumpContext reads all registers of a context.
func newDumpContext(d *minidump.Dump, c *minidump.Context) dumpContext {
	list, err := c.Registers()
	if err != nil {
		return dumpContext{Problem: err.Error()}
	}
	out := dumpContext{Arch: c.Arch, Context: hexNumber(c.Flags), Registers: make(map[string]string, len(list))}
	for _, r := range list {
		out.order = append(out.order, r.Name)
		if d.Order.String() == "BigEndian" {
			slices.Reverse(r.Value)
		}
		if len(r.Value) > 8 {
			out.Registers[r.Name] = hex.EncodeToString(r.Value)
			continue
		}
		v := uint64(0)
		for i, b := range r.Value {
			v |= uint64(b) << (8 * i)
		}
		out.Registers[r.Name] = fmt.Sprintf("0x%0*x", 2*len(r.Value), v)
	}
	return out
}

func (m *Minidump) addModules(d *minidump.Dump) {
	m.Modules = listOf(d.Modules, func(module *minidump.Module) dumpModule {
		out := dumpModule{
			Base: hexNumber(module.Base), Size: hexNumber(uint64(module.Size)), Name: module.Name, Version: d.ModuleVersion(module),
			Checksum: hexNumber(uint64(module.Checksum)), Timestamp: hexNumber(uint64(module.Timestamp)),
			Format: module.Identity.Format, DebugFile: module.Identity.File, DebugID: module.Identity.DebugID(), CodeID: d.CodeID(module),
			BuildID: hex.EncodeToString(module.Identity.BuildID),
		}
		if a := module.Crashpad; a != nil {
			for _, text := range a.List {
				out.Annotations = append(out.Annotations, dumpAnnotation{Type: minidump.AnnotationText, Text: text})
			}
			out.Annotations = append(append(out.Annotations, annotations(a.Simple)...), annotations(a.Objects)...)
		}
		return out
	})
	m.Unloaded = listOf(d.UnloadedModules, func(module *minidump.UnloadedModule) dumpUnloaded {
		return dumpUnloaded{hexNumber(module.Base), hexNumber(uint64(module.Size)), module.Name, hexNumber(uint64(module.Checksum)), hexNumber(uint64(module.Timestamp))}
	})
}

func annotations(source []minidump.Annotation) []dumpAnnotation {
	return listOf(source, func(a *minidump.Annotation) dumpAnnotation {
		return dumpAnnotation{a.Name, a.Type, a.Text, hex.EncodeToString(a.Value)}
	})
}

func newDumpRange(r *minidump.Range) dumpRange {
	return dumpRange{hexNumber(r.Start), hexNumber(r.Size), hexNumber(r.Offset)}
}

func (m *Minidump) addMemory(d *minidump.Dump) {
	m.Memory = listOf(d.Memory(), newDumpRange)
	m.MemoryInfo = listOf(d.MemoryInfo, func(p *minidump.MemoryInfo) dumpPages {
		return dumpPages{
			hexNumber(p.Base), hexNumber(p.Size), nameOf(p.State, pageStates), strings.Join(flagNames(uint64(p.Protect), pageProtections), "|"),
			nameOf(p.Type, pageTypes), hexNumber(p.AllocationBase),
		}
	})
}

func (m *Minidump) addLinux(d *minidump.Dump) {
	l := &d.Linux
	out := dumpLinux{
		CommandLine: l.CommandLine, Environment: l.Environ, Maps: dumpText(l.MapsText), CPUInfo: dumpText(l.CPUInfo),
		Status: dumpText(l.Status), Distribution: dumpText(l.LSBRelease), Limits: dumpText(l.Limits),
	}
	for _, e := range d.Auxv() {
		out.Auxv = append(out.Auxv, dumpAux{e.Type, hexNumber(e.Value)})
	}
	if g := l.DSODebug; g != nil {
		out.Libraries = listOf(g.Libraries, func(l *minidump.LinkMap) dumpLibrary { return dumpLibrary{l.Name, hexNumber(l.Bias)} })
	}
	isEmpty := len(out.CommandLine)+len(out.Environment)+len(out.Auxv)+len(out.Libraries) == 0 &&
		out.Maps+out.CPUInfo+out.Status+out.Distribution+out.Limits == ""
	if !isEmpty {
		m.Linux = &out
	}
}

func (m *Minidump) addCrashpad(d *minidump.Dump) {
	c := d.Crashpad
	if c == nil {
		return
	}
	m.Crashpad = &dumpCrashpad{Version: c.Version, ReportID: d.UUID(c.ReportID), ClientID: d.UUID(c.ClientID), Annotations: annotations(c.Annotations)}
	if c.AddressMask != 0 {
		m.Crashpad.AddressMask = hexNumber(c.AddressMask)
	}
}

// WriteJSON writes the contents of the dump as one JSON value.
func (m *Minidump) WriteJSON(w io.Writer) error { return WriteJSON(w, m) }
