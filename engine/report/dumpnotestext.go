// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// dumpPrinter writes a Minidump for people.
type dumpPrinter struct {
	*Printer
	paint
}

// WriteText writes the contents of the dump for people, without problems, which are messages.
func (m *Minidump) WriteText(w io.Writer, isColored bool) error {
	p := &dumpPrinter{NewPrinter(w), newPaint(isColored)}
	h := &m.Header
	p.printf("%s\n", p.header("minidump "+m.File))
	p.fact("written", h.Time)
	p.fact("contents", strings.Join(h.FlagNames, ", "))
	p.list("streams", len(m.Streams), func(i int) {
		s := &m.Streams[i]
		p.printf("  0x%08x  %-20s  %8d bytes\n", parse(s.Offset), s.Type, s.Size)
	})
	p.process(m)
	p.threads(m)
	p.modules(m)
	p.memory(m)
	p.list("handles", len(m.Handles), func(i int) {
		h := &m.Handles[i]
		p.printf("  0x%08x  %-12s  access %s  %s\n", parse(h.Handle), h.Type, h.Access, h.Name)
	})
	p.linux(m.Linux)
	p.crashpad(m)
	p.list("comments", len(m.Comments), func(i int) { p.printf("  %s\n", m.Comments[i]) })
	return p.Flush()
}

// fact writes a line of a section; nothing for "".
func (p *dumpPrinter) fact(name, value string) {
	if value != "" {
		p.printf("  %-12s  %s\n", name, value)
	}
}

func (p *dumpPrinter) section(name string) { p.printf("\n%s\n", p.header(name)) }

// list writes a section with a line for each of its elements; none of an empty one.
func (p *dumpPrinter) list(name string, count int, one func(i int)) {
	if count == 0 {
		return
	}
	p.section(fmt.Sprintf("%s (%d)", name, count))
	for i := 0; i < count && p.check() == nil; i++ {
		one(i)
	}
}

func (p *dumpPrinter) process(m *Minidump) {
	if s := m.System; s != nil {
		p.section("system")
		p.fact("os", strings.TrimSpace(cmp.Or(s.OS, fmt.Sprintf("platform %#x", s.Platform))+" "+s.Version+" "+s.Build))
		p.fact("processor", fmt.Sprintf("%d of %s %s", s.Processors, cmp.Or(s.Arch, fmt.Sprintf("architecture %#x", s.Processor)), s.CPU))
	}
	if s := m.Misc; s != nil {
		p.section("process")
		if s.ProcessID != 0 {
			p.fact("id", fmt.Sprint(s.ProcessID))
		}
		p.fact("created", s.CreateTime)
		if s.CreateTime != "" {
			p.fact("processor", fmt.Sprintf("%d s of its own, %d s in the kernel", s.UserTime, s.KernelTime))
		}
		p.fact("integrity", s.Integrity)
		p.fact("time zone", s.TimeZone)
		p.fact("build", s.BuildString)
		p.fact("debugger", s.DebugBuild)
	}
	if a := m.Assertion; a != nil {
		p.section("assertion")
		p.fact("expression", a.Expression)
		p.fact("function", a.Function)
		p.fact("position", fmt.Sprintf("%s:%d", a.File, a.Line))
		p.fact("type", fmt.Sprint(a.Type))
	}
	for i := range m.Exceptions {
		x := &m.Exceptions[i]
		p.section(fmt.Sprintf("exception of thread %d", x.Thread))
		p.printf("  %s\n", p.warn(x.Meaning))
		p.fact("code", x.Code)
		p.fact("flags", x.Flags)
		p.fact("address", x.Address)
		p.fact("parameters", strings.Join(x.Parameters, " "))
		p.fact("record", x.Record)
		p.fact("description", x.Said)
		p.registers(&x.dumpContext)
	}
}

func (p *dumpPrinter) threads(m *Minidump) {
	if b := m.Breakpad; b != nil && (b.DumpThread != nil || b.RequestingThread != nil) {
		p.section("asked for by")
		for _, f := range []struct {
			name string
			id   *uint32
		}{{"dumper", b.DumpThread}, {"asked", b.RequestingThread}} {
			if f.id != nil {
				p.fact(f.name, fmt.Sprintf("thread %d", *f.id))
			}
		}
	}
	for i := range m.Threads {
		t := &m.Threads[i]
		name := fmt.Sprintf("thread %d", t.ID)
		if t.Name != "" {
			name += fmt.Sprintf(" %q", t.Name)
		}
		p.section(name)
		if t.Stack != nil {
			p.fact("stack", fmt.Sprintf("%s, %s bytes at %s of the file", t.Stack.Start, t.Stack.Size, t.Stack.Offset))
		}
		if parse(t.TEB) != 0 {
			p.fact("block", t.TEB)
		}
		p.fact("begins at", t.Start)
		p.fact("last error", t.LastError)
		if t.SuspendCount != 0 {
			p.fact("suspended", fmt.Sprintf("%d times", t.SuspendCount))
		}
		p.registers(&t.dumpContext)
		if p.check() != nil {
			return
		}
	}
}

// registerLine is the width of a line of registers, and shownRegister the number of digits of
// a register that are written: the tile registers have a kilobyte.
const (
	registerLine  = 100
	shownRegister = 64
)

// registers writes registers in columns: registers of 64 bits at most, then the others.
func (p *dumpPrinter) registers(c *dumpContext) {
	if c.Problem != "" {
		p.fact("registers", c.Problem)
		return
	}
	p.fact("registers", fmt.Sprintf("of %s, flags %s", c.Arch, c.Context))
	for _, isWide := range []bool{false, true} {
		var cells []string
		name, value := 0, 0
		for _, r := range c.order {
			if v := c.Registers[r]; isWide != strings.HasPrefix(v, "0x") {
				name, value = max(name, len(r)), max(value, min(len(v), shownRegister))
			}
		}
		for _, r := range c.order {
			v := c.Registers[r]
			if isWide == strings.HasPrefix(v, "0x") {
				continue
			}
			if len(v) > shownRegister {
				v = fmt.Sprintf("%s... (%d bytes)", v[:shownRegister], len(v)/2)
			}
			cells = append(cells, fmt.Sprintf("%-*s %-*s", name, r, value, v))
		}
		for row := range slices.Chunk(cells, max(1, registerLine/(name+value+3))) {
			p.printf("    %s\n", strings.TrimRight(strings.Join(row, "  "), " "))
		}
	}
}

func (p *dumpPrinter) modules(m *Minidump) {
	p.list("modules", len(m.Modules), func(i int) {
		module := &m.Modules[i]
		p.printf("  0x%016x  0x%08x  %s\n", parse(module.Base), parse(module.Size), strings.TrimSpace(module.Name+" "+module.Version))
		if module.DebugID != "" || module.CodeID != "" {
			p.printf("%22s%s %s, code %s\n", "", cmp.Or(module.DebugFile, "debug ID"), cmp.Or(module.DebugID, "unknown"), cmp.Or(module.CodeID, "unknown"))
		}
		for j := range module.Annotations {
			p.annotation("                      ", &module.Annotations[j])
		}
	})
	p.list("unloaded modules", len(m.Unloaded), func(i int) {
		module := &m.Unloaded[i]
		p.printf("  0x%016x  0x%08x  %s\n", parse(module.Base), parse(module.Size), module.Name)
	})
}

func (p *dumpPrinter) annotation(indent string, a *dumpAnnotation) {
	value := a.Text
	if a.Value != "" {
		value = fmt.Sprintf("%s (type %#x)", a.Value, a.Type)
	}
	if a.Name != "" {
		value = a.Name + ": " + value
	}
	p.printf("%s%s\n", WithTabs(indent), value)
}

func (p *dumpPrinter) memory(m *Minidump) {
	p.list("memory", len(m.Memory), func(i int) {
		r := &m.Memory[i]
		p.printf("  0x%016x  %10d bytes at %s of the file\n", parse(r.Start), parse(r.Size), r.Offset)
	})
	p.list("regions", len(m.MemoryInfo), func(i int) {
		r := &m.MemoryInfo[i]
		p.printf("  0x%016x  %14d bytes  %-11s  %-22s  %s\n", parse(r.Base), parse(r.Size), r.State, r.Protection, r.Type)
	})
}

func (p *dumpPrinter) linux(l *dumpLinux) {
	if l == nil {
		return
	}
	p.list("command line", len(l.CommandLine), func(i int) { p.printf("  %s\n", l.CommandLine[i]) })
	p.list("environment", len(l.Environment), func(i int) { p.printf("  %s\n", l.Environment[i]) })
	p.list("auxiliary vector", len(l.Auxv), func(i int) { p.printf("  %4d  %s\n", l.Auxv[i].Type, l.Auxv[i].Value) })
	p.list("libraries", len(l.Libraries), func(i int) {
		p.printf("  0x%016x  %s\n", parse(l.Libraries[i].Bias), cmp.Or(l.Libraries[i].Name, "the executable"))
	})
	for _, t := range []struct{ name, text string }{
		{"maps", l.Maps}, {"distribution", l.Distribution}, {"status", l.Status}, {"limits", l.Limits}, {"cpuinfo", l.CPUInfo},
	} {
		lines := strings.Split(strings.TrimRight(t.text, "\n"), "\n")
		if t.text == "" {
			continue
		}
		p.list(t.name, len(lines), func(i int) { p.printf("  %s\n", WithTabs(lines[i])) })
	}
}

func (p *dumpPrinter) crashpad(m *Minidump) {
	if c := m.Crashpad; c != nil {
		p.section("crashpad")
		p.fact("report", c.ReportID)
		p.fact("client", c.ClientID)
		p.fact("pointers", c.AddressMask)
		for i := range c.Annotations {
			p.annotation("  ", &c.Annotations[i])
		}
	}
	if m.SoftErrors != "" {
		p.section("soft errors")
		for line := range strings.Lines(m.SoftErrors) {
			p.printf("  %s\n", strings.TrimRight(line, "\n"))
		}
	}
}
