// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/target/mach"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// Facts returns what the dump says apart from the state of its threads.
func (d *Dump) Facts() *trace.Facts {
	f := &trace.Facts{}
	// Parts that were cut off meanwhile are left out.
	_ = object.Guard(func() error {
		f.Process, f.System, f.Crash = d.processFacts(), d.systemFacts(), d.crashFacts()
		for i := range d.UnloadedModules {
			f.Unloaded = append(f.Unloaded, d.unloadedFact(&d.UnloadedModules[i]))
		}
		for i := range d.Handles {
			h := &d.Handles[i]
			f.Handles = append(f.Handles, trace.Handle{Number: h.Handle, Type: h.Type, Name: h.Object})
		}
		f.LastErrors = d.lastErrors()
		f.Distribution, f.Limits, f.Mappings = distribution(d.Linux.LSBRelease), limits(d.Linux.Limits), len(d.Linux.Maps)
		f.Annotations = d.annotationFacts()
		f.Messages, f.BootArguments = d.macMessages(), d.bootArguments()
		f.SoftErrors = softErrors(d.Data(StreamMozSoftErrors))
		return nil
	})
	return f
}

func (d *Dump) processFacts() trace.Process {
	p := trace.Process{Kept: time.Unix(int64(d.Header.Time), 0).UTC()}
	if d.Header.Time == 0 {
		p.Kept = time.Time{}
	}
	if m := d.Misc; m != nil {
		p.ID = int64(m.ProcessID)
		if m.Flags&MiscProcessTimes != 0 && m.CreateTime != 0 {
			p.Created = time.Unix(int64(m.CreateTime), 0).UTC()
		}
	}
	if len(d.Modules) > 0 { // writers list the executable first
		p.Main = d.Modules[0].Base
	}
	status := keys(d.Linux.Status, ":")
	if n, err := strconv.ParseUint(status("Pid"), 10, 32); err == nil && p.ID == 0 {
		p.ID = int64(n) //nolint:gosec // of 32 bits
	}
	p.Executable = status("Name")
	p.Command = strings.Join(d.Linux.CommandLine, " ")
	return p
}

// keys finds the values of lines "KEY SEPARATOR VALUE", the first one of a key.
func keys(text []byte, separator string) func(key string) string {
	all := map[string]string{}
	for line := range bytes.Lines(text[:min(len(text), maxText)]) {
		key, value, ok := strings.Cut(strings.ToValidUTF8(string(line), "\ufffd"), separator)
		key = strings.TrimSpace(key)
		if _, known := all[key]; ok && !known {
			all[key] = strings.Trim(value, " \t\r\n\x00")
		}
	}
	return func(key string) string { return all[key] }
}

func (d *Dump) systemFacts() trace.System {
	s := d.System
	if s == nil {
		return trace.System{}
	}
	y := trace.System{
		OS: s.OS(), Version: s.Version(), Build: strings.TrimSpace(s.ServicePack), Arch: s.Arch(), Platform: s.Platform,
		CPU: s.describeCPU(), Processors: int(s.Processors),
	}
	if y.Version == "0.0.0" && y.OS == LinuxOS {
		y.Version, y.Build = splitUname(y.Build)
	}
	if emulator := d.emulator(); emulator != "" {
		y.CPU += ", emulated on " + ArchARM64 + ": " + emulator + " is loaded"
	}
	if digits, ok := strings.CutPrefix(keys(d.Linux.CPUInfo, ":")("microcode"), "0x"); ok {
		n, err := strconv.ParseUint(digits, 16, 64)
		y.Microcode, y.HasMicrocode = n, err == nil
	}
	return y
}

// emulator returns the library by which Windows on arm64 executes code of other processors, which a
// process of theirs has loaded; "" where there is none.
func (d *Dump) emulator() string {
	for i := range d.Modules {
		name := object.LastPart(d.Modules[i].Name)
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "xtajit") && strings.HasSuffix(lower, ".dll") {
			return name
		}
	}
	return ""
}

// splitUname splits Breakpad's and Crashpad's text of uname: the system's name, the
// release, the version, and the machine.
func splitUname(text string) (release, version string) {
	words := strings.Split(text, " ")
	if len(words) < 2 {
		return "0.0.0", text
	}
	rest := words[2:]
	for _, drop := range []bool{true, words[len(words)-1] == "Linux/GNU"} {
		if drop && len(rest) > 0 {
			rest = rest[:len(rest)-1]
		}
	}
	return words[1], strings.Join(rest, " ")
}

// describeCPU names a processor: family, model and stepping of x86, version and
// features of ARM; "" of others.
func (s *System) describeCPU() string {
	switch s.Arch() {
	case ArchX86, ArchAMD64:
		text := fmt.Sprintf("family %d model %d stepping %d", s.Level, s.Revision>>8, s.Revision&0xff)
		if s.Arch() == ArchX86 {
			text = s.Vendor + " " + text
		}
		return text
	case ArchARM:
		text := fmt.Sprintf("ARMv%d", s.Level)
		if s.CPUVersion != 0 {
			maker, part := s.CPUVersion>>24, s.CPUVersion&0xff00fff0
			text += " " + cmp.Or(armMakers[maker], fmt.Sprintf("vendor(%#x)", maker)) + " " + cmp.Or(armParts[part], fmt.Sprintf("part(%#x)", part))
		}
		var has []string
		for i, name := range armFeatures {
			if s.CPUFeatures>>i&1 != 0 {
				has = append(has, name)
			}
		}
		if len(has) > 0 {
			text += " features: " + strings.Join(has, ",")
		}
		return text
	}
	return ""
}

// armMakers and armParts are the values of ARM's main ID register, armFeatures the bits
// of HWCAP (arch/arm/include/uapi/asm/hwcap.h).
var (
	armMakers = map[uint32]string{0x41: "ARM", 0x51: "Qualcomm", 0x56: "Marvell", 0x69: "Intel/Marvell"}
	armParts  = map[uint32]string{
		0x4100c050: "Cortex-A5", 0x4100c080: "Cortex-A8", 0x4100c090: "Cortex-A9", 0x4100c0f0: "Cortex-A15", 0x4100c140: "Cortex-R4",
		0x4100c150: "Cortex-R5", 0x4100b360: "ARM1136", 0x4100b560: "ARM1156", 0x4100b760: "ARM1176", 0x4100b020: "ARM11-MPCore",
		0x41009260: "ARM926", 0x41009460: "ARM946", 0x41009660: "ARM966", 0x510006f0: "Krait", 0x510000f0: "Scorpion",
	}
	armFeatures = strings.Fields(`swp half thumb 26bit fastmult fpa vfpv2 edsp java iwmmxt crunch thumbee neon vfpv3 vfpv3d16 tls vfpv4
		idiva idivt`)
)

// crashFacts describes the first exception; without one, the thread that requested the
// dump.
func (d *Dump) crashFacts() *trace.Crash {
	c := &trace.Crash{}
	switch {
	case len(d.Exceptions) > 0:
		x := &d.Exceptions[0]
		r := d.Reason(x)
		c.Name, c.Thread, c.IsRequest = d.CrashName(x), threadID(x.ThreadID), r.IsRequest
		c.Address, c.HasAddress = r.Address, r.HasAddress
		if !c.HasAddress && r.Access == "" && d.hasInstruction(x) {
			c.Address, c.HasAddress = d.address(x.Address), true
		}
		d.addSignalFacts(c, x)
		if d.os() == Windows {
			c.Access, c.Parameters = r.Access, x.Parameters
		}
	case d.Breakpad != nil && d.Breakpad.HasRequestingThreadID:
		c.Thread, c.IsRequest = threadID(d.Breakpad.RequestingThreadID), true
	case d.Assertion == nil:
		return nil
	}
	if a := d.Assertion; a != nil {
		c.Assertion = a.String()
	}
	return c
}

// addSignalFacts reads the parts of a siginfo_t that Breakpad and Crashpad write beside
// the address. Crashpad has si_pid and si_uid as parameters of signals that the hardware
// does not raise, and for SIGSYS the number of the system call and its architecture. For
// signals that the hardware can raise, but a sender did, they are in the address.
func (d *Dump) addSignalFacts(c *trace.Crash, x *Exception) {
	if os := d.os(); c.IsRequest || x.Flags == lldbFlags || os != LinuxOS && os != Android {
		return
	}
	c.Code, c.HasCode = d.signalCode(x)
	p, name := x.Parameters, signalName(d.arch(), x.Code)
	switch {
	case slices.Contains(faults, name):
		if c.HasCode && target.IsFromProcess(c.Code) {
			c.Sender = d.senderAt(x.Address)
		}
	case len(p) < 2 || !strings.HasPrefix(name, "SIG"):
	case name == "SIGSYS":
		c.SystemCall = &trace.SystemCall{Number: int32(p[0]), Arch: uint32(p[1]), Address: d.address(x.Address)} //nolint:gosec // their bits
	case slices.Contains(timers, name) || c.Code > 0:
	default:
		c.HasCode = true
		c.Sender = &trace.Sender{ID: int32(p[0]), User: uint32(p[1])} //nolint:gosec // their bits
	}
}

// signalCode returns the si_code of a signal. It is 0, SI_USER, also where the writer left
// it out, as old versions of Breakpad do; Crashpad always writes it.
func (d *Dump) signalCode(x *Exception) (code int32, isKnown bool) {
	return int32(x.Flags), x.Flags != 0 || d.Crashpad != nil //nolint:gosec // si_code has a sign
}

// senderAt returns the sender of a signal whose si_pid and si_uid are stored as an address;
// 32 bits have only si_pid.
func (d *Dump) senderAt(address uint64) *trace.Sender {
	first, second := uint32(address), uint32(address>>32) //nolint:gosec // its halves
	if d.word() == 4 {
		return &trace.Sender{ID: int32(first), NoUser: true} //nolint:gosec // its bits
	}
	if d.Order == binary.BigEndian {
		first, second = second, first
	}
	return &trace.Sender{ID: int32(first), User: second} //nolint:gosec // its bits
}

// hasInstruction reports whether the address of an exception that is not about memory is the
// instruction's: so on Windows, and in Breakpad's and Crashpad's dumps of macOS.
func (d *Dump) hasInstruction(x *Exception) bool {
	switch d.os() {
	case Windows:
		return true
	case MacOS, IOS:
		return mach.Exception(x.Code) != mach.BadAccess && x.Address != 0
	}
	return false
}

func threadID(id uint32) string { return strconv.FormatUint(uint64(id), 10) }

// String returns the assertion as a line.
func (a *Assertion) String() string {
	text := a.Expression
	if text == "" {
		text = map[uint32]string{
			AssertInvalidParameter: "an invalid parameter was passed to a function of the C library",
			AssertPureVirtualCall:  "a pure virtual function was called",
		}[a.Type]
	}
	parts := []string{cmp.Or(text, fmt.Sprintf("an assertion of type %#x", a.Type))}
	if a.Function != "" {
		parts = append(parts, a.Function)
	}
	if a.File != "" {
		parts = append(parts, fmt.Sprintf("%s:%d", a.File, a.Line))
	}
	return strings.Join(parts, ", ")
}

func (d *Dump) unloadedFact(m *UnloadedModule) trace.UnloadedModule {
	return trace.UnloadedModule{Name: m.Name, Base: m.Base, Size: uint64(m.Size), CodeID: fmt.Sprintf("%08X%x", m.Timestamp, m.Size)}
}

// lastErrors reads LastErrorValue of the thread environment blocks (TEB), which is
// behind 13 words.
func (d *Dump) lastErrors() map[string]string {
	if d.os() != Windows {
		return nil
	}
	all := map[string]string{}
	for i := range d.Threads {
		t := &d.Threads[i]
		var b [4]byte
		address := t.TEB + 13*uint64(d.word())
		if n, _ := d.ReadMemory(address, b[:]); t.TEB != 0 && address > t.TEB && n == len(b) {
			all[threadID(t.ID)] = errorName(d.Order.Uint32(b[:]))
		}
	}
	return all
}

// distribution reads /etc/lsb-release or /etc/os-release.
func distribution(text []byte) *trace.Distribution {
	if len(text) == 0 {
		return nil
	}
	value := keys(text, "=")
	first := func(names ...string) string {
		for _, name := range names {
			if v := strings.Trim(value(name), `"'`); v != "" {
				return v
			}
		}
		return ""
	}
	return &trace.Distribution{
		ID: first("DISTRIB_ID", "ID"), Release: first("DISTRIB_RELEASE", "VERSION_ID"),
		Codename: first("DISTRIB_CODENAME", "VERSION_CODENAME"), Description: first("DISTRIB_DESCRIPTION", "PRETTY_NAME"),
	}
}

// limits reads /proc/PID/limits, whose columns have two blanks between them at least:
// the name, the soft limit, the hard limit, and a unit.
func limits(text []byte) (list []trace.Limit) {
	for i, line := range strings.Split(string(text[:min(len(text), maxText)]), "\n") {
		columns := slices.DeleteFunc(strings.Split(line, "  "), func(s string) bool { return strings.TrimSpace(s) == "" })
		if i == 0 || len(columns) < 3 {
			continue
		}
		l := trace.Limit{Name: strings.ToValidUTF8(strings.TrimSpace(columns[0]), "\ufffd")}
		var errs [2]error
		for j, n := range []*uint64{&l.Soft, &l.Hard} {
			if *n = trace.Unlimited; strings.TrimSpace(columns[1+j]) != "unlimited" {
				*n, errs[j] = strconv.ParseUint(strings.TrimSpace(columns[1+j]), 10, 64)
			}
		}
		if len(columns) > 3 {
			l.Unit = strings.ToValidUTF8(strings.TrimSpace(columns[3]), "\ufffd")
		}
		if errs == [2]error{} {
			list = append(list, l)
		}
	}
	return list
}

// annotationFacts returns the texts of Crashpad.
func (d *Dump) annotationFacts() (list []trace.Annotation) {
	add := func(module string, annotations []Annotation) {
		for i := range annotations {
			if a := &annotations[i]; a.Type == AnnotationText {
				list = append(list, trace.Annotation{Module: module, Name: a.Name, Value: a.Text})
			}
		}
	}
	if d.Crashpad != nil {
		add("", d.Crashpad.Annotations)
	}
	for i := range d.Modules {
		m := &d.Modules[i]
		if m.Crashpad == nil {
			continue
		}
		for _, text := range m.Crashpad.List {
			list = append(list, trace.Annotation{Module: m.Name, Value: text})
		}
		add(m.Name, m.Crashpad.Simple)
		add(m.Name, m.Crashpad.Objects)
	}
	return list
}

// softErrors returns the text of the stream, if it is JSON.
func softErrors(text []byte) []byte {
	text = bytes.Trim(text, "\x00 \t\r\n")
	if len(text) == 0 || len(text) > maxText || !json.Valid(text) {
		return nil
	}
	return bytes.Clone(text)
}

// ModuleVersion returns the version of a module's file; "" where the dump has none. Files
// of Linux have four numbers of 32 bits.
func (d *Dump) ModuleVersion(m *Module) string {
	v := m.Version
	if os := d.os(); v.HasIt && (os == LinuxOS || os == Android) {
		return fmt.Sprintf("%d.%d.%d.%d", v.File>>32, v.File&0xffffffff, v.Product>>32, v.Product&0xffffffff)
	}
	return v.String()
}
