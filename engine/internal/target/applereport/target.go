// SPDX-License-Identifier: Apache-2.0

package applereport

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// ErrNotReport is wrapped by the error of a file that is no report of stacks.
var ErrNotReport = errors.New("not a report of macOS with stacks")

// Options are how a report becomes a target.
type Options struct {
	Finder object.Finder
	// Describe returns the description of an architecture by its name.
	Describe func(arch string) (*sdk.Description, error)
}

// Target is the process of a report.
type Target struct {
	info    trace.Target
	report  *Report
	mapping *object.Mapping
	modules []*target.Module
	threads []*trace.Thread
	files   target.FileBytes
	options Options
}

// machines are the machines of ELF by the names of architectures.
var machines = map[string]elf.Machine{"aarch64": elf.EM_AARCH64, "x86_64": elf.EM_X86_64, "arm": elf.EM_ARM, "i386": elf.EM_386}

// OpenMapped makes a target of a report. m is closed with the target, and after an error.
func OpenMapped(m *object.Mapping, options Options) (*Target, error) {
	t := &Target{mapping: m, options: options}
	err := object.Guard(func() (err error) { t.report, err = Read(m.Data()); return err })
	if err != nil {
		_ = m.Close()
		return nil, fmt.Errorf("%s: %w: %w", m.Path(), ErrNotReport, err)
	}
	t.info = trace.Target{Kind: trace.AppleReport, Path: m.Path(), Machine: uint16(machines[t.report.Arch]), Facts: &t.report.Facts}
	for _, p := range t.report.Problems {
		t.problem("%s", p)
	}
	t.info.Facts.System.Arch = t.report.Arch
	t.addModules()
	t.addThreads()
	return t, nil
}

// Read reads a report, told by its first bytes.
func Read(data []byte) (*Report, error) {
	data = pasted(data)
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); bytes.HasPrefix(trimmed, []byte("{")) {
		return readIPS(trimmed)
	}
	return readPlain(data)
}

// readPlain reads a report that begins as text.
func readPlain(data []byte) (*Report, error) {
	if isTree(data) {
		return readTree(data)
	}
	if r := readFull(data); r != nil {
		return r, nil
	}
	return readText(data)
}

// readFull reads the JSON behind a report as text, where a file has both; nil: it has not, or the JSON is cut.
func readFull(data []byte) *Report {
	_, rest, ok := bytes.Cut(data, []byte("\nFull Report"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	start := bytes.IndexByte(rest, '{')
	if !ok || start < 0 || len(bytes.TrimSpace(line)) > 0 {
		return nil
	}
	r, err := readIPS(rest[start:])
	if err != nil || len(r.Problems) > 0 {
		return nil
	}
	return r
}

// problem adds a sentence to the problems of the target.
func (t *Target) problem(format string, args ...any) {
	t.info.Problems = append(t.info.Problems, t.info.Path+": "+fmt.Sprintf(format, args...))
}

// addModules makes modules of the images, and finds the files of the ones that a frame is in.
func (t *Target) addModules() {
	used := t.usedImages()
	executable := t.report.Facts.Process.Executable
	isExeUsed := t.options.Finder.Exe == ""
	for i := range t.report.Images {
		image := &t.report.Images[i]
		if image.Base == 0 {
			continue // code in no image
		}
		path := cmp.Or(image.Path, image.Name)
		m := &target.Module{Module: trace.Module{
			Path: path, BuildID: image.UUID, Version: image.Version, Base: image.Base, Size: image.Size, Arch: cmp.Or(archOf(image.Arch), t.report.Arch),
			IsMachO: true,
		}}
		isExe := executable != "" && path == executable
		isExeUsed = isExeUsed || isExe
		if used[i] != unused || isExe {
			t.find(m, isExe)
		}
		if m.Object == nil && used[i] == isNamed && isSystem(path) {
			m.Problem, m.Tried = "", nil // the report has the names, and hardly anybody the file
		}
		m.Segments = segmentsOf(m)
		t.modules = append(t.modules, m)
	}
	if !isExeUsed {
		t.problem("%s was not used: no image of the report is the executable", t.options.Finder.Exe)
	}
	target.SortModules(t.modules)
	t.separate()
	t.files = target.NewFileBytes(t.modules)
}

// use tells which frames are in an image.
type use uint8

const (
	unused    use = iota
	isNamed       // the report names all of its frames
	isUnnamed     // not all
)

// isSystem reports whether an image is of the system itself.
func isSystem(path string) bool {
	return strings.HasPrefix(path, "/System/") || strings.HasPrefix(path, "/usr/lib/")
}

// usedImages returns which images have frames in them.
func (t *Target) usedImages() []use {
	images := t.report.Images
	used := make([]use, len(images))
	order := make([]int, len(images))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(images[a].Base, images[b].Base) })
	mark := func(f *Frame) {
		n, isBase := slices.BinarySearchFunc(order, f.Address, func(i int, a uint64) int { return cmp.Compare(images[i].Base, a) })
		if !isBase {
			n--
		}
		if n < 0 || n >= len(order) {
			return
		}
		if i := &images[order[n]]; i.Size > 0 && f.Address-i.Base >= i.Size {
			return
		}
		is := isNamed
		if f.Symbol == "" {
			is = isUnnamed
		}
		used[order[n]] = max(used[order[n]], is)
	}
	for i := range t.report.Threads {
		th := &t.report.Threads[i]
		for k := range th.Frames {
			mark(&th.Frames[k])
		}
	}
	return used
}

// find finds the file of an image by its UUID. A file of another format, or of another machine, is not taken.
func (t *Target) find(m *target.Module, isExe bool) {
	found := t.options.Finder.FindCode(m.Path, m.BuildID, "", "", isExe)
	m.Object, m.File, m.Problem, m.Tried = found.Object, found.File(), found.Problem, found.Tried
	if m.Object == nil {
		return
	}
	var reason string
	switch {
	case !m.Object.IsMachO():
		reason = "it is no Mach-O file"
	case uint16(machines[m.Arch]) != m.Object.Machine():
		reason = fmt.Sprintf("it is for %s, the image is of %s", object.DescribeMachine(m.Object.Machine()), m.Arch)
	default:
		if m.Object.DebugOnly() {
			m.Problem, m.Tried = "", nil // names are all that is needed
		}
		return
	}
	m.Problem = fmt.Sprintf("%s was not used: %s", found.Path, reason)
	m.Tried = append(found.Tried, object.Attempt{Path: found.Path, Reason: reason, Kind: object.Mismatched})
	_ = m.Object.Close()
	m.Object, m.File = nil, ""
}

// segmentsOf returns where the code of an image is. Without a file addresses count from the base. Only
// segments of code count: the others of images of the shared cache lie elsewhere.
func segmentsOf(m *target.Module) (list []trace.Segment) {
	if m.Object == nil {
		if m.Size == 0 || m.Base+m.Size < m.Base {
			return nil
		}
		return []trace.Segment{{Size: m.Size, Start: m.Base, Executable: true}}
	}
	base := uint64(0)
	_ = object.Guard(func() error {
		if text := m.Object.MachO().Text(); text != nil {
			base = text.Address
		}
		return nil
	})
	for _, s := range m.Object.Segments() {
		start := s.Address - base + m.Base
		if s.Executable() && s.Address >= base && s.MemSize > 0 && start >= m.Base && start+s.MemSize > start {
			list = append(list, trace.Segment{Address: s.Address, Size: s.MemSize, Start: start, Executable: true})
		}
	}
	return list
}

// separate takes the segments of images that overlap others, which lie before them: no frame is in two.
func (t *Target) separate() {
	end, overlaps := uint64(0), 0
	var last *target.Module
	for _, m := range t.modules {
		for i := range m.Segments {
			s := &m.Segments[i]
			if s.Start < end && last != m {
				if overlaps++; overlaps == 1 {
					t.problem("image %s at %#x overlaps %s: no frame is looked up in it", m.Path, m.Base, last.Path)
				}
				m.Segments = nil
				break
			}
			if s.Start+s.Size > end {
				end, last = s.Start+s.Size, m
			}
		}
	}
	if overlaps > 1 {
		t.problem("%d more images overlap others: no frame is looked up in them", overlaps-1)
	}
}

// addThreads makes the threads with their frames and registers.
func (t *Target) addThreads() {
	for i := range t.report.Threads {
		recorded := &t.report.Threads[i]
		th := &trace.Thread{
			Handle: uint64(i), ID: recorded.ID, Name: recorded.Name, State: recorded.State, Arch: t.report.Arch, Crashed: recorded.Crashed,
			Recorded: framesOf(recorded.Frames),
		}
		if len(recorded.Frames) == 0 {
			th.Problem = "the report has no frames of it"
		}
		if len(recorded.Registers) > 0 {
			d, err := t.options.Describe(t.report.Arch)
			if err != nil {
				th.Named = recorded.Registers
			} else {
				setRegisters(th, recorded.Registers, d)
			}
		}
		t.threads = append(t.threads, th)
	}
}

// registerNames are names of registers that architectures name differently.
var registerNames = map[string]string{"fp": "x29", "lr": "x30", "rflags": "eflags", "rfl": "eflags", "efl": "eflags"}

// setRegisters sets the registers of a thread by their names.
func setRegisters(th *trace.Thread, list []trace.NamedRegister, d *sdk.Description) {
	for _, r := range list {
		info, ok := d.RegisterByName(r.Name)
		if !ok {
			if info, ok = d.RegisterByName(registerNames[r.Name]); !ok {
				continue
			}
		}
		b := make([]byte, 8)
		binary.LittleEndian.PutUint64(b, r.Value)
		if size := (int(info.Bits) + 7) / 8; size <= len(b) {
			th.Registers.Set(info.Number, b[:size])
		}
	}
}

// framesOf makes recorded frames, with calls inlined into a frame among its functions.
func framesOf(list []Frame) []trace.RecordedFrame {
	frames := make([]trace.RecordedFrame, 0, len(list))
	for start := 0; start < len(list); {
		end := start
		for end+1 < len(list) && list[end].IsInlined && list[end+1].Address == list[start].Address {
			end++
		}
		f := &list[end]
		out := trace.RecordedFrame{PC: f.Address, Exact: list[start].Exact, Offset: f.Offset, HasOffset: f.HasOffset}
		for i := start; i <= end; i++ {
			if list[i].Symbol != "" {
				out.Symbols = append(out.Symbols, list[i].symbol(i < end))
			}
		}
		frames = append(frames, out)
		start = end + 1
	}
	return frames
}

// symbol returns the function of a frame.
func (f *Frame) symbol(isInlined bool) trace.Symbol {
	s := trace.Symbol{Function: f.Symbol, Inlined: isInlined, IsReported: true}
	if f.Line > 0 {
		s.File, s.Line = f.File, int(f.Line)
	}
	return s
}

// Info returns the facts of the report.
func (t *Target) Info() trace.Target { return t.info }

// Threads returns the threads in the order of the report, behind the stack of an exception that ended the process.
func (t *Target) Threads() []*trace.Thread { return t.threads }

// Modules returns the images, by address.
func (t *Target) Modules() []*target.Module { return t.modules }

// ReadMemory reads the code of images from their files: a report has no memory.
func (t *Target) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	if space != locexpr.DefaultSpace {
		return 0, fmt.Errorf("address space %d: %w", space, target.ErrNoMemory)
	}
	return target.ReadBytes(address, buf, func(address uint64) ([]byte, error) {
		b, _, _ := t.files.At(address)
		return b, nil
	})
}

// FromFile implements target.FileMemory.
func (t *Target) FromFile(address uint64) (m *target.Module, n uint64) {
	b, m, next := t.files.At(address)
	if m == nil {
		return nil, max(next-address, 1)
	}
	return m, max(uint64(len(b)), 1)
}

// Mapped reports whether an address is in the code of an image.
func (t *Target) Mapped(address uint64) (mapped, executable bool) {
	for _, m := range t.modules {
		if _, ok := m.Contains(address); ok {
			return true, true
		}
	}
	return false, false
}

// Close closes the files of the images and the report.
func (t *Target) Close() error {
	var errs []error
	for _, m := range t.modules {
		if m.Object != nil {
			errs = append(errs, m.Object.Close())
		}
	}
	return errors.Join(append(errs, t.mapping.Close())...)
}
