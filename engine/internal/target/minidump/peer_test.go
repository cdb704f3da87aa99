// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A block is a structure as Breakpad's minidump_dump prints it.
type peerBlock struct {
	name string
	list []peerField
}

type peerField struct{ key, value string }

// The name of an annotation may have " = " behind it, in its type.
var peerLine = regexp.MustCompile(`^ +(\S.*?(?: \(type = \d+\))?) += (.*)$`)

// peerBlocks divides what minidump_dump prints. A structure ends at an empty line.
// The bytes of memory, which stand on a line of their own, are a field "memory".
func peerBlocks(text string) []peerBlock {
	var list []peerBlock
	isNew := true
	for _, line := range strings.Split(text, "\n") {
		if line == "" {
			isNew = true
			continue
		}
		if m := peerLine.FindStringSubmatch(line); m != nil && len(list) > 0 {
			b := &list[len(list)-1]
			b.list = append(b.list, peerField{strings.ReplaceAll(m[1], " ", ""), m[2]})
			isNew = false
			continue
		}
		if strings.HasPrefix(line, "0x") && len(list) > 0 {
			list[len(list)-1].list = append(list[len(list)-1].list, peerField{"memory", line[2:]})
			continue
		}
		if isNew || strings.HasPrefix(line, "MD") || line == "Stack" {
			list = append(list, peerBlock{name: line})
			isNew = false
		}
	}
	return list
}

// ignored are what the dump has and Dump does not: offsets of texts and records, and
// what repeats other fields.
var ignored = regexp.MustCompile(`^(module_name_rva|csd_version_rva|cv_record\.rva|misc_record\.(data_size|rva)|\(misc_record\)|` +
	`thread_name_rva|p\d_home|memory\.rva|\(debug_file\)|\(cv_record\)|xstate_data\.features\[\]|` +
	`cpu\.other_cpu_info.*|module_list.*|list_annotations.*|signature|float_save\.fpscr|float_save\.extra.*)$`)

// answer is what a Dump says for a structure of the peer. ok is false for a
// structure that is not compared.
type answer func(key string) (value string, ok bool)

type peerCheck struct {
	t        *testing.T
	d        *Dump
	compared int
	// counts of the structures up to now
	threads, modules, ranges, directory, regions int
	inThread, inException                        bool
}

func (c *peerCheck) block(b peerBlock) {
	var a answer
	switch {
	case b.name == "MDRawHeader":
		a = table(map[string]any{
			"version": hexNumber(c.d.Header.Version), "stream_count": c.d.Header.Streams, "stream_directory_rva": hexNumber(c.d.Header.Directory),
			"checksum": hexNumber(c.d.Header.Checksum), "time_date_stamp": hexNumber(c.d.Header.Time), "flags": hexNumber(c.d.Header.Flags),
		})
	case b.name == "MDRawDirectory":
		s := c.d.Streams[c.directory]
		c.directory++
		a = table(map[string]any{"stream_type": hexNumber(s.Type), "location.data_size": s.Size, "location.rva": hexNumber(s.Offset)})
	case b.name == "MDRawThread":
		t := &c.d.Threads[c.threads]
		c.threads++
		c.inThread, c.inException = true, false
		a = table(map[string]any{
			"thread_id": hexNumber(t.ID), "suspend_count": t.SuspendCount, "priority_class": hexNumber(t.PriorityClass),
			"priority": hexNumber(t.Priority), "teb": hexNumber(t.TEB), "stack.start_of_memory_range": hexNumber(t.Stack.Start),
			"stack.memory.data_size": hexNumber(t.Stack.Size), "stack.memory.rva": hexNumber(t.Stack.Offset),
			"thread_context.data_size": hexNumber(len(t.Context.Raw)), "thread_context.rva": hexNumber(t.Context.Offset),
		})
	case b.name == "Stack":
		t := &c.d.Threads[c.threads-1]
		a = table(map[string]any{"memory": c.memory(t.Stack.Start, t.Stack.Size)})
	case b.name == "MDMemoryDescriptor" || b.name == "Memory":
		a = c.region(b)
	case b.name == "MDRawContextAMD64" || b.name == "MDRawContextX86" || b.name == "MDRawContextARM64":
		a = c.context()
	case b.name == "MDRawModule":
		a = c.module()
	case b.name == "MDException":
		a = c.exception()
	case b.name == "MDRawSystemInfo":
		a = c.system()
	case b.name == "MDRawMiscInfo":
		a = c.misc()
	case b.name == "MDRawBreakpadInfo":
		a = table(map[string]any{"dump_thread_id": hexNumber(c.d.Breakpad.DumpThreadID), "requesting_thread_id": hexNumber(c.d.Breakpad.RequestingThreadID),
			"validity": hexNumber(bit(c.d.Breakpad.HasDumpThreadID) | bit(c.d.Breakpad.HasRequestingThreadID)<<1)})
	case b.name == "MDAssertion":
		x := c.d.Assertion
		a = table(map[string]any{"expression": x.Expression, "function": x.Function, "file": x.File, "line": x.Line, "type": x.Type})
	case b.name == "MDRawMemoryInfo":
		m := c.d.MemoryInfo[c.regions]
		c.regions++
		a = table(map[string]any{
			"base_address": hexNumber(m.Base), "allocation_base": hexNumber(m.AllocationBase), "allocation_protection": hexNumber(m.AllocationProtect),
			"region_size": hexNumber(m.Size), "state": hexNumber(m.State), "protection": hexNumber(m.Protect), "type": hexNumber(m.Type),
		})
	case b.name == "MDRawThreadName":
		a = c.threadName(b)
	case b.name == "MDRawCrashpadInfo":
		a = c.crashpad(b)
	default:
		return
	}
	for _, f := range b.list {
		if ignored.MatchString(f.key) {
			continue
		}
		want := f.value
		if strings.Contains(f.key, "time") || f.key == "stream_type" || f.key == "processor_architecture" || f.key == "platform_id" {
			want = strings.SplitN(want, " ", 2)[0]
			if strings.HasPrefix(f.key, "time_zone") {
				want = f.value
			}
		}
		got, ok := a(f.key)
		want = c.tolerate(b.name, f.key, want, got)
		if !ok {
			c.t.Errorf("%s: %s %s: the peer has %.60s, here is no such field", c.d.Path, b.name, f.key, want)
		} else if got != want {
			c.t.Errorf("%s: %s %s: %.80s, the peer has %.80s", c.d.Path, b.name, f.key, got, want)
		}
		c.compared++
	}
}

// tolerate returns what is right where the peer is not, or does not say it.
func (c *peerCheck) tolerate(block, key, want, got string) string {
	switch {
	case want == "(invalid)" && strings.HasPrefix(key, "xstate_data."):
		// The peer goes by the flag of the process' cookie. That the description is
		// there and right is seen in TestExtendedState.
		return got
	case want == "(invalid)" && slices.Contains([]string{"0", "0x0", "", "0000-00-00 (0) 00:00:00.000"}, got):
		return got // the flags do not say that it is there
	case strings.Contains(key, "_mhz") && strings.HasPrefix(want, "-"):
		// Crashpad wrote Hz on macOS, and the peer prints numbers without sign as
		// numbers with one.
		n, _ := strconv.Atoi(want)
		return fmt.Sprint(uint32(n))
	}
	return want
}

// texts compares the streams that the peer prints as they are.
func (c *peerCheck) texts(text string) {
	for name, stream := range map[string]StreamType{
		"CMD_LINE": StreamLinuxCommandLine, "ENVIRON": StreamLinuxEnviron, "LSB_RELEASE": StreamLinuxLSBRelease,
		"PROC_STATUS": StreamLinuxProcStatus, "CPU_INFO": StreamLinuxCPUInfo, "MAPS": StreamLinuxMaps,
	} {
		head := "Stream MD_LINUX_" + name + ":\n"
		b := c.d.Data(stream)
		if b == nil && !strings.Contains(text, head) {
			continue
		}
		c.compared++
		if want := strings.ReplaceAll(string(b), "\x00", "\\0\n"); !strings.Contains(text, head+want) {
			c.t.Errorf("%s: %s is not what the peer prints: %.200q", c.d.Path, name, want)
		}
		var again []string
		switch stream {
		case StreamLinuxMaps:
			for _, m := range c.d.Linux.Maps {
				again = append(again, fmt.Sprintf("%08x-%08x %s %08x %s %d %s", m.Start, m.End, m.Rights, m.Offset, m.Device, m.Inode, m.Path))
			}
			lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
			for i, line := range lines {
				if i == len(again) && len(c.d.Problems()) > 0 {
					continue // the last line of linux_executable_stack.dmp is cut, which is said
				}
				if i >= len(again) || !slices.Equal(strings.Fields(line), strings.Fields(again[i])) {
					c.t.Errorf("%s: mapping %d of %d: %q", c.d.Path, i, len(again), line)
					break
				}
			}
			c.compared += 7 * len(lines)
		case StreamLinuxCommandLine:
			again = c.d.Linux.CommandLine
		case StreamLinuxEnviron:
			again = c.d.Linux.Environ
		default:
			continue
		}
		if stream != StreamLinuxMaps && strings.TrimRight(strings.Join(again, "\x00"), "\x00") != strings.TrimRight(string(b), "\x00") {
			c.t.Errorf("%s: %s: %q of %q", c.d.Path, name, again, b)
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func hexNumber[T ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64](n T) string {
	return fmt.Sprintf("%#x", uint64(n))
}

func table(m map[string]any) answer {
	return func(key string) (string, bool) {
		v, ok := m[key]
		return fmt.Sprint(v), ok
	}
}

func (c *peerCheck) memory(start, size uint64) string {
	b := make([]byte, size)
	n, err := c.d.ReadMemory(start, b)
	if err != nil {
		c.t.Errorf("%s: %#x: %v", c.d.Path, start, err)
	}
	return hex.EncodeToString(b[:n])
}

func (c *peerCheck) region(b peerBlock) answer {
	if b.name == "MDMemoryDescriptor" {
		c.ranges++
	}
	listed := peerRanges(c.d)
	m := listed[c.ranges-1]
	return table(map[string]any{
		"start_of_memory_range": hexNumber(m.Start), "memory.data_size": hexNumber(m.Size), "memory": c.memory(m.Start, m.Size),
	})
}

// peerRanges are the entries of the memory list, which Dump joins.
func peerRanges(d *Dump) []Range {
	other := &Dump{data: d.data, Order: d.Order}
	for i := range d.Streams {
		if d.Streams[i].Type == StreamMemoryList {
			other.readMemoryList(&d.Streams[i])
		}
	}
	var list []Range
	for _, b := range other.added {
		list = append(list, b.Range)
	}
	return list
}

// peerNames are registers that minidump_dump names otherwise.
var peerNames = map[string]string{
	"mx_csr": "mxcsr", "float_save.control_word": "fsave_control", "float_save.status_word": "fsave_status", "float_save.tag_word": "fsave_tag",
	"float_save.error_offset": "fsave_error_offset", "float_save.error_selector": "fsave_error_selector",
	"float_save.data_offset": "fsave_data_offset", "float_save.data_selector": "fsave_data_selector",
	"float_save.cr0_npx_state": "cr0_npx_state", "float_save.fpsr": "fpsr", "float_save.fpcr": "fpcr", "iregs[31]": "sp", "iregs[32]": "pc",
}

var peerIndexed = regexp.MustCompile(`^(iregs|float_save\.regs|bcr|bvr|wcr|wvr)\[(\d+)\]$`)

func (c *peerCheck) context() answer {
	x := &c.d.Exceptions
	ctx := Context{}
	switch {
	case c.inException:
		ctx = (*x)[0].Context
	default:
		ctx = c.d.Threads[c.threads-1].Context
	}
	list, err := ctx.Registers()
	if err != nil {
		c.t.Errorf("%s: %v", c.d.Path, err)
	}
	values := map[string][]byte{}
	for _, r := range list {
		values[r.Name] = r.Value
	}
	return func(key string) (string, bool) {
		name := key
		if n, ok := peerNames[key]; ok {
			name = n
		} else if m := peerIndexed.FindStringSubmatch(key); m != nil {
			name = map[string]string{"iregs": "x", "float_save.regs": "v"}[m[1]]
			if name == "" {
				name = m[1]
			}
			name += m[2]
		}
		switch key {
		case "context_flags":
			return hexNumber(ctx.Flags), true
		case "float_save.register_area[80]":
			return "0x" + c.joined(values, "fsave_st%d", 8), true
		case "extended_registers[512]":
			return "0x" + hex.EncodeToString(ctx.Raw[204:716]), true
		}
		v, ok := values[name]
		if !ok {
			// What the flags do not say to be there is printed all the same.
			for _, f := range ctx.format.fields {
				if f.name == name && ctx.Flags&uint64(f.group) == 0 {
					return c.raw(ctx.Raw[f.offset : f.offset+f.size]), true
				}
			}
			return "", false
		}
		return c.raw(v), true
	}
}

// raw writes a register as the peer does: two halves, of which the second one is not
// padded. The peer takes the first half in memory for the higher one, of dumps in
// either byte order; ARM64_NT_NEON128 of winnt.h has the lower one first.
func (c *peerCheck) raw(v []byte) string {
	if len(v) == 16 {
		lo, hi := c.d.Order.Uint64(v), c.d.Order.Uint64(v[8:])
		return fmt.Sprintf("0x%x%x", lo, hi)
	}
	return hexNumber(c.d.number(v))
}

func (c *peerCheck) joined(values map[string][]byte, format string, count int) string {
	var b []byte
	for i := range count {
		b = append(b, values[fmt.Sprintf(format, i)]...)
	}
	return hex.EncodeToString(b)
}

func quoted(s string) string { return `"` + s + `"` }

func (c *peerCheck) module() answer {
	m := &c.d.Modules[c.modules]
	c.modules++
	v, id := m.Version, m.Identity
	version := 0
	if v.HasIt {
		version = versionSignature
	}
	pair := func(n uint64) string { return fmt.Sprintf("%#x:%#x", n>>32, n&0xffffffff) }
	signature := map[string]uint32{PDB70: 0x53445352, ELFID: 0x4270454c, PDB20: 0x3031424e}[id.Format]
	form := c.d.UUID(id.GUID)
	if id.Format == PDB20 {
		form = hexNumber(id.Signature)
	}
	code := c.d.CodeID(m)
	if c.d.os() != Windows && id.Format != ELFID {
		code = "id" // the peer knows none, of macOS too
	}
	debug := id.DebugID()
	if debug == "" {
		debug = strings.Repeat("0", 33) // Breakpad: as above
		if id.Format == NoFormat {
			debug = ""
		}
	}
	return table(map[string]any{
		"base_of_image": hexNumber(m.Base), "size_of_image": hexNumber(m.Size), "checksum": hexNumber(m.Checksum), "time_date_stamp": hexNumber(m.Timestamp),
		"version_info.signature": hexNumber(version), "version_info.struct_version": hexNumber(v.StructVersion),
		"version_info.file_version": pair(v.File), "version_info.product_version": pair(v.Product),
		"version_info.file_flags_mask": hexNumber(v.FlagsMask), "version_info.file_flags": hexNumber(v.Flags), "version_info.file_os": hexNumber(v.OS),
		"version_info.file_type": hexNumber(v.FileType), "version_info.file_subtype": hexNumber(v.FileSubtype),
		"version_info.file_date": fmt.Sprintf("%#x:%#x", v.FileDateHigh, v.FileDateLow),
		"cv_record.data_size":    len(id.Raw), "(code_file)": quoted(m.Name), "(code_identifier)": quoted(code),
		"(cv_record).cv_signature": hexNumber(signature), "(cv_record).signature": form, "(cv_record).age": id.Age,
		"(cv_record).pdb_file_name": quoted(id.File), "(cv_record).build_id": hex.EncodeToString(id.BuildID),
		"(debug_identifier)": quoted(debug), "(version)": quoted(v.String()),
	})
}

func (c *peerCheck) exception() answer {
	c.inException = true
	x := &c.d.Exceptions[0]
	m := map[string]any{
		"thread_id": hexNumber(x.ThreadID), "exception_record.exception_code": hexNumber(x.Code), "exception_record.exception_flags": hexNumber(x.Flags),
		"exception_record.exception_record": hexNumber(x.Record), "exception_record.exception_address": hexNumber(x.Address),
		"exception_record.number_parameters": len(x.Parameters), "thread_context.data_size": len(x.Context.Raw),
		"thread_context.rva": hexNumber(x.Context.Offset),
	}
	for i, p := range x.Parameters {
		m[fmt.Sprintf("exception_record.exception_information[%d]", i)] = hexNumber(p)
	}
	return table(m)
}

func (c *peerCheck) system() answer {
	y := c.d.System
	vendor := "(null)"
	if y.Arch() == ArchX86 {
		vendor = quoted(y.Vendor)
	}
	csd := quoted(y.ServicePack)
	m := map[string]any{
		"processor_architecture": hexNumber(y.Architecture), "processor_level": y.Level, "processor_revision": hexNumber(y.Revision),
		"number_of_processors": y.Processors, "product_type": y.ProductType, "major_version": y.Major, "minor_version": y.Minor,
		"build_number": y.Build, "platform_id": hexNumber(y.Platform), "suite_mask": hexNumber(y.SuiteMask), "(csd_version)": csd, "(cpu_vendor)": vendor,
	}
	r := record{y.CPU[:], c.d.Order}
	for i, name := range []string{"vendor_id[0]", "vendor_id[1]", "vendor_id[2]", "version_information", "feature_information", "amd_extended_cpu_features"} {
		m["cpu.x86_cpu_info."+name] = hexNumber(r.u32(4 * i))
	}
	return table(m)
}

func (c *peerCheck) misc() answer {
	m := c.d.Misc
	z := m.TimeZone
	date := func(s SystemTime) string {
		return fmt.Sprintf("%04d-%02d-%02d (%d) %02d:%02d:%02d.%03d", s.Year, s.Month, s.Day, s.DayOfWeek, s.Hour, s.Minute, s.Second, s.Milliseconds)
	}
	a := table(map[string]any{
		"size_of_info": m.Size, "flags1": hexNumber(m.Flags), "process_id": m.ProcessID, "process_create_time": hexNumber(m.CreateTime),
		"process_user_time": m.UserTime, "process_kernel_time": m.KernelTime, "processor_max_mhz": m.Power.MaxMHz, "processor_current_mhz": m.Power.CurrentMHz,
		"processor_mhz_limit": m.Power.LimitMHz, "processor_max_idle_state": m.Power.MaxIdleState, "processor_current_idle_state": m.Power.CurrentIdleState,
		"process_integrity_level": hexNumber(m.IntegrityLevel), "process_execute_flags": hexNumber(m.ExecuteFlags), "protected_process": m.ProtectedProcess,
		"time_zone_id": m.TimeZoneID, "time_zone.bias": z.Bias, "time_zone.standard_name": z.StandardName, "time_zone.standard_date": date(z.StandardDate),
		"time_zone.standard_bias": z.StandardBias, "time_zone.daylight_name": z.DaylightName, "time_zone.daylight_date": date(z.DaylightDate),
		"time_zone.daylight_bias": z.DaylightBias, "build_string": m.BuildString, "dbg_bld_str": m.DebugBuildString,
		"xstate_data.size_of_info": m.XStateSize, "xstate_data.context_size": m.XStateContextSize, "xstate_data.enabled_features": hexNumber(m.XStateFeatures),
		"process_cookie": int32(m.ProcessCookie),
	})
	part := regexp.MustCompile(`^xstate_data\.features\[(\d+)\]$`)
	return func(key string) (string, bool) {
		if f := part.FindStringSubmatch(key); f != nil {
			i, _ := strconv.Atoi(f[1])
			return fmt.Sprintf("{ %d, %d }", m.XState[i].Offset, m.XState[i].Size), true
		}
		return a(key)
	}
}

func (c *peerCheck) threadName(b peerBlock) answer {
	id, err := strconv.ParseUint(b.list[0].value, 0, 32)
	i := slices.IndexFunc(c.d.Threads, func(t Thread) bool { return t.ID == uint32(id) })
	if err != nil || i < 0 {
		c.t.Errorf("%s: no thread %s", c.d.Path, b.list[0].value)
		return table(nil)
	}
	t := &c.d.Threads[i]
	return table(map[string]any{"thread_id": hexNumber(t.ID), "thread_name": quoted(t.Name)})
}

var peerAnnotation = regexp.MustCompile(`^module_list\[\d+\]\.crashpad_annotations\["(.*)"\]\(type=(\d+)\)$`)

// crashpad compares the annotations of modules by hand: their keys have more than a
// name.
func (c *peerCheck) crashpad(b peerBlock) answer {
	p := c.d.Crashpad
	m := map[string]any{"version": p.Version, "report_id": c.d.UUID(p.ReportID), "client_id": c.d.UUID(p.ClientID), "address_mask": p.AddressMask}
	for _, a := range p.Annotations {
		m[`simple_annotations["`+a.Name+`"]`] = a.Text
	}
	var module *Module
	seen := map[string]int{}
	for _, f := range b.list {
		key := regexp.MustCompile(`^module_list\[\d+\]\.`).ReplaceAllString(f.key, "")
		if key == f.key {
			continue
		}
		c.compared++
		if key == "minidump_module_list_index" {
			i, _ := strconv.Atoi(f.value)
			module, seen = &c.d.Modules[i], map[string]int{}
			continue
		}
		name, _, _ := strings.Cut(key, "[")
		i := seen[name]
		seen[name]++
		var got string
		switch name {
		case "version":
			got = fmt.Sprint(module.Crashpad.Version)
		case "list_annotations":
			got = module.Crashpad.List[i]
		case "crashpad_annotations":
			a := module.Crashpad.Objects[i]
			got = a.Text
			if a.Type != AnnotationText {
				got = hex.EncodeToString(a.Value)
			}
			if match := peerAnnotation.FindStringSubmatch(f.key); match == nil || match[1] != a.Name || match[2] != fmt.Sprint(a.Type) {
				c.t.Errorf("%s: annotation %s %d, the peer has %s", c.d.Path, a.Name, a.Type, f.key)
			}
		case "simple_annotations":
			a := module.Crashpad.Simple[i]
			got = a.Text
			if key != `simple_annotations["`+a.Name+`"]` {
				c.t.Errorf("%s: annotation %s, the peer has %s", c.d.Path, a.Name, key)
			}
		default:
			continue
		}
		if got != f.value {
			c.t.Errorf("%s: %s: %q, the peer has %q", c.d.Path, f.key, got, f.value)
		}
	}
	return table(m)
}

// checkPeer compares a dump with what minidump_dump prints of it, and returns how many
// fields it compared.
func checkPeer(t *testing.T, path, text string) int {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer d.Close()
	c := &peerCheck{t: t, d: d}
	for _, b := range peerBlocks(text) {
		c.block(b)
	}
	c.texts(text)
	if c.threads != len(d.Threads) || c.modules != len(d.Modules) || c.directory != len(d.Streams) || c.regions != len(d.MemoryInfo) {
		t.Errorf("%s: %d threads, %d modules, %d streams, %d regions; the peer has %d, %d, %d, %d", path,
			len(d.Threads), len(d.Modules), len(d.Streams), len(d.MemoryInfo), c.threads, c.modules, c.directory, c.regions)
	}
	return c.compared
}

// dumpsFolder names a folder with dumps, and with an executable minidump_dump, built
// from Breakpad's sources. Those of Breakpad's, rust-minidump's and symbolicator's
// repositories are not in this one.
// testdata/public.sh makes one.
const dumpsFolder = "UNWINDD_MINIDUMPS"

// minidump2.dmp and what minidump_dump prints of it are Breakpad's
// (src/processor/testdata), under the licence beside them.
func TestADumpReadsAsBreakpadReadsIt(t *testing.T) {
	text, err := os.ReadFile("testdata/minidump2.dump.txt")
	if err != nil {
		t.Fatal(err)
	}
	if n := checkPeer(t, "testdata/minidump2.dmp", string(text)); n < 400 {
		t.Errorf("%d fields were compared", n)
	}
}

func TestPublicDumpsReadAsBreakpadReadsThem(t *testing.T) {
	folder := os.Getenv(dumpsFolder)
	if folder == "" {
		t.Skipf("%s names no folder of dumps", dumpsFolder)
	}
	total, dumps := 0, 0
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".dmp" || strings.HasPrefix(filepath.Base(path), "invalid-r") {
			return err
		}
		// It fails where the dump lacks any of the streams, and prints the others.
		out, _ := exec.Command(filepath.Join(folder, "minidump_dump"), path).Output()
		n := checkPeer(t, path, string(out))
		if n < 50 {
			t.Errorf("%s: %d fields were compared", path, n)
		}
		total += n
		dumps++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d fields of %d dumps", total, dumps)
}
