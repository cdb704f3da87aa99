// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/sdk"
)

// amd64Description reads PC and SP of the x86-64 user_regs_struct.
func amd64Description() *sdk.Description {
	return &sdk.Description{
		Name: "x86_64", AddressBits: 64, PC: 16, SP: 7, FP: 6,
		RegisterSets: []sdk.RegisterSet{{Source: sdk.CoreNote, Owner: coreOwner, Type: ntPRSTATUS, Fields: []sdk.RegisterField{
			{Offset: 112 + 16*8, Size: 8, Register: 16}, {Offset: 112 + 19*8, Size: 8, Register: 7},
		}}},
	}
}

// memoryPiece is memory of a live process.
type memoryPiece struct {
	start    uint64
	rights   string
	path     string
	offset   uint64
	contents []byte
}

// subject is a process of testdata/subject.c.
type subject struct {
	t      *testing.T
	dir    string
	exe    string
	cmd    *exec.Cmd
	stdin  io.Closer
	pid    int
	pieces []memoryPiece
}

// start compiles and starts the subject in a directory of its own.
func start(t *testing.T, threads int, filter string, library bool, flags ...string) *subject {
	t.Helper()
	if machine := strings.TrimSpace(oracle.Run(t, "uname", "-m")); machine != "x86_64" {
		t.Skipf("the cores of this test are those of x86_64, this machine is %s", machine)
	}
	s := &subject{t: t, dir: t.TempDir()}
	s.exe = filepath.Join(s.dir, "subject-of-a-long-name")
	args := append([]string{"-O1", "-g", "-pthread", "-o", s.exe, "testdata/subject.c"}, flags...)
	oracle.Run(t, "gcc", args...)
	command := []string{"-c", `ulimit -c unlimited; exec "$@"`, "sh", s.exe, strconv.Itoa(threads), filter}
	if library {
		path := filepath.Join(s.dir, "library.so")
		oracle.Run(t, "gcc", "-O1", "-g", "-shared", "-fPIC", "-o", path, "testdata/library.c")
		command = append(command, path)
	}
	s.cmd = exec.Command("sh", command...)
	s.cmd.Dir = s.dir
	s.cmd.Stderr = os.Stderr
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdin = stdin
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the subject said %q: %v", line, err)
	}
	if _, err := fmt.Sscanf(line, "ready %d", &s.pid); err != nil {
		t.Fatal(err)
	}
	return s
}

// look reads all memory of the process, which waits for its input.
func (s *subject) look() {
	s.t.Helper()
	for range 1000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
		if err != nil {
			s.t.Fatal(err)
		}
		if bytes.Contains(stat, []byte(") S ")) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.pid))
	if err != nil {
		s.t.Fatal(err)
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", s.pid))
	if err != nil {
		oracle.Missing(s.t, "%v", err)
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		var from, to uint64
		fmt.Sscanf(fields[0], "%x-%x", &from, &to)
		p := memoryPiece{start: from, rights: fields[1]}
		fmt.Sscanf(fields[2], "%x", &p.offset)
		if len(fields) > 5 {
			p.path = strings.Join(fields[5:], " ")
		}
		if from >= 1<<63 || to-from > 1<<27 || p.rights[0] != 'r' {
			continue
		}
		p.contents = make([]byte, to-from)
		if _, err := mem.ReadAt(p.contents, int64(from)); err != nil {
			continue // [vvar]
		}
		s.pieces = append(s.pieces, p)
	}
}

// crash lets the process die and returns its core.
func (s *subject) crash() string {
	s.t.Helper()
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || strings.TrimSpace(string(pattern)) != "core" {
		oracle.Missing(s.t, "core_pattern is %q (%v), expected \"core\"", pattern, err)
	}
	s.stdin.Close()
	s.cmd.Wait()
	found, _ := filepath.Glob(filepath.Join(s.dir, "core*"))
	if len(found) != 1 {
		oracle.Missing(s.t, "the process left %d cores: %v", len(found), s.cmd.ProcessState)
	}
	return found[0]
}

// gcore lets gdb take a core.
func (s *subject) gcore() string {
	s.t.Helper()
	oracle.Tools(s.t, "gcore")
	out, err := exec.Command("gcore", "-o", filepath.Join(s.dir, "gcore"), strconv.Itoa(s.pid)).CombinedOutput()
	path := filepath.Join(s.dir, fmt.Sprintf("gcore.%d", s.pid))
	if _, statErr := os.Stat(path); statErr != nil {
		oracle.Missing(s.t, "gcore: %v\n%s", err, out)
	}
	return path
}

func openReal(t *testing.T, path string, finder ...object.Finder) *Core {
	t.Helper()
	o := Options{Describe: describe(amd64Description()), Finder: object.Finder{Folders: []string{filepath.Dir(path)}}}
	if len(finder) > 0 {
		o.Finder = finder[0]
	}
	c, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// checkTruth compares each byte that the core gives with the live process's.
// Of memory that may change, only that is compared which cannot have.
func (s *subject) checkTruth(c *Core, writable bool) (known, unknown int) {
	s.t.Helper()
	buf := make([]byte, 4096)
	for _, p := range s.pieces {
		if p.rights[1] == 'w' && !writable {
			continue
		}
		for at := 0; at < len(p.contents); {
			n, _ := c.ReadMemory(0, p.start+uint64(at), buf[:min(4096-at&4095, len(p.contents)-at)])
			if !bytes.Equal(buf[:n], p.contents[at:at+n]) {
				i := 0
				for buf[i] == p.contents[at+i] {
					i++
				}
				s.t.Errorf("%#x (%s %s): read %#x, the process has %#x", p.start+uint64(at+i), p.rights, p.path, buf[i], p.contents[at+i])
				return known, unknown
			}
			known += n
			at += n
			if n == 0 || at&4095 != 0 {
				// To the next 16 bytes: what is known may begin within a page.
				skip := min(16-at&15, len(p.contents)-at)
				unknown += skip
				at += skip
			}
		}
	}
	return known, unknown
}

// checkCode says that all code of the modules with an object is known, and the
// object's.
func checkCode(t *testing.T, c *Core) {
	t.Helper()
	for _, m := range c.Modules() {
		if m.Object == nil {
			continue
		}
		for _, seg := range m.Segments {
			if !seg.Executable {
				continue
			}
			want, got := make([]byte, seg.Size), make([]byte, seg.Size)
			if _, err := m.Object.ReadAddress(want, seg.Address); err != nil {
				t.Errorf("%s: %v", m.Path, err)
			}
			if n, err := c.ReadMemory(0, seg.Start, got); err != nil {
				t.Errorf("%s: %#x bytes of code at %#x: read %#x, %v", m.Path, seg.Size, seg.Start, n, err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: the code at %#x is not the object's", m.Path, seg.Start)
			}
			if mapped, executable := c.Mapped(seg.Start); !mapped || !executable {
				t.Errorf("%s: code at %#x: mapped %v, executable %v", m.Path, seg.Start, mapped, executable)
			}
		}
	}
}

// loaded lists the files with code that /proc/PID/maps shows, by where their
// headers are: in the last mapping of the file's start that is before the code.
func (s *subject) loaded() map[uint64]string {
	list := map[uint64]string{}
	headers := map[string]uint64{}
	for _, p := range s.pieces {
		if _, ok := headers[p.path]; p.offset == 0 && (p.rights[2] != 'x' || !ok) {
			headers[p.path] = p.start
		}
		if p.rights[2] == 'x' && (strings.HasPrefix(p.path, "/") && !strings.HasPrefix(p.path, "/memfd:") || p.path == "[vdso]") {
			list[headers[p.path]] = strings.TrimSuffix(p.path, deletedSuffix)
		}
	}
	return list
}

func loadedOf(c *Core) map[uint64]string {
	list := map[uint64]string{}
	for _, m := range c.Modules() {
		list[lowest(m)&^4095] = m.Path
	}
	return list
}

func TestCoresOfRealProcesses(t *testing.T) {
	type kind struct {
		filter string
		flags  []string
	}
	kinds := map[string]kind{
		"default":                      {"0x33", nil},
		"everything dumped":            {"0x7f", nil},
		"nothing dumped":               {"0x0", nil},
		"no headers dumped":            {"0x23", nil},
		"static":                       {"0x33", []string{"-static", "-DNO_DLOPEN"}},
		"static, no headers dumped":    {"0x23", []string{"-static", "-DNO_DLOPEN"}},
		"static PIE":                   {"0x33", []string{"-static-pie", "-DNO_DLOPEN"}},
		"fixed address":                {"0x33", []string{"-no-pie"}},
		"fixed address, no headers":    {"0x23", []string{"-no-pie"}},
		"code and data in one segment": {"0x33", []string{"-Wl,-z,noseparate-code"}},
		"no build ID":                  {"0x33", []string{"-Wl,--build-id=none"}},
		"lld":                          {"0x33", []string{"-fuse-ld=lld"}},
		"lld, no headers dumped":       {"0x23", []string{"-fuse-ld=lld"}},
		"lld, fixed address":           {"0x33", []string{"-fuse-ld=lld", "-no-pie"}},
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "default" && name != "nothing dumped" {
				t.Skip("the race detector, which -short is for, sees the same in the default one")
			}
			if strings.Contains(name, "lld") {
				oracle.Tools(t, "ld.lld")
			}
			s := start(t, 3, k.filter, false, k.flags...)
			s.look()
			gcorePath := s.gcore()
			corePath := s.crash()
			exe, _ := filepath.EvalSymlinks(s.exe)
			for _, test := range []struct {
				producer, path string
				writable       bool
			}{{"kernel", corePath, false}, {"gcore", gcorePath, true}} {
				t.Run(test.producer, func(t *testing.T) {
					c := openReal(t, test.path)
					s.t = t
					known, unknown := s.checkTruth(c, test.writable)
					t.Logf("%d bytes known, %d unknown", known, unknown)
					checkCode(t, c)
					want := s.loaded()
					if name == "nothing dumped" && test.producer == "kernel" {
						// The kernel always dumps the vDSO, and nothing else here.
						if known == 0 {
							t.Error("no memory is known")
						}
					}
					if diff := cmp.Diff(want, loadedOf(c)); diff != "" {
						t.Errorf("modules: %s", diff)
					}
					for _, m := range c.Modules() {
						if m.Object == nil {
							t.Errorf("%s: %s", m.Path, m.Problem)
						}
						if m.Path == exe && m.File != s.exe && m.File != exe {
							t.Errorf("%s is read from %q", m.Path, m.File)
						}
						checkable := name != "no build ID" && (k.filter == "0x33" || k.filter == "0x7f")
						if m.Path == exe && checkable && m.Problem != "" || m.Path == exe && !checkable && test.producer == "kernel" && m.Problem == "" {
							t.Errorf("%s: problem %q", m.Path, m.Problem)
						}
					}
					info := c.Info()
					if len(info.Problems) != 0 && name != "nothing dumped" {
						t.Errorf("problems: %q", info.Problems)
					}
					if len(c.Threads()) != 4 {
						t.Errorf("%d threads", len(c.Threads()))
					}
					for i, th := range c.Threads() {
						if th.Problem != "" {
							t.Errorf("thread %s: %s", th.ID, th.Problem)
						}
						if isMain := th.ID == strconv.Itoa(s.pid); isMain != (i == 0) {
							t.Errorf("thread %d is %s, the process is %d", i, th.ID, s.pid)
						}
						wantName := map[string]string{"kernel": "subject-main", "gcore": "subject-of-a-lon"}[test.producer]
						if i == 0 && th.Name != wantName || i != 0 && th.Name != "" {
							t.Errorf("thread %s has the name %q", th.ID, th.Name)
						}
						if crashed := i == 0 && test.producer == "kernel"; th.Crashed != crashed || crashed != (th.Signal == 11) {
							t.Errorf("thread %s: crashed %v, signal %d", th.ID, th.Crashed, th.Signal)
						}
					}
					if test.producer == "kernel" && (info.Signal != 11 || !info.HasFaultAddress || info.FaultAddress != 0) || test.producer == "gcore" && info.Signal != 0 {
						t.Errorf("signal %d, fault %v at %#x", info.Signal, info.HasFaultAddress, info.FaultAddress)
					}
				})
			}
		})
	}
}

// A core without NT_FILE gives the same modules by NT_AUXV and the dynamic
// loader's list.
func TestRealCoreWithoutNTFILE(t *testing.T) {
	for _, flags := range [][]string{nil, {"-no-pie"}, {"-static", "-DNO_DLOPEN"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			s := start(t, 1, "0x33", false, flags...)
			s.look()
			path := s.crash()
			with := openReal(t, path)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			tag := binary.LittleEndian.AppendUint32(nil, ntFILE)
			at := bytes.Index(data, append(tag, "CORE\x00"...))
			data[at]++
			other := filepath.Join(s.dir, "core.without")
			if err := os.WriteFile(other, data, 0o600); err != nil {
				t.Fatal(err)
			}
			without := openReal(t, other)
			type row struct{ BuildID, File, Segments string }
			rows := func(c *Core) (list []row) {
				for _, m := range c.Modules() {
					file := m.File
					if file != "" {
						file, _ = filepath.EvalSymlinks(file)
					}
					list = append(list, row{fmt.Sprintf("%x", m.BuildID), file, fmt.Sprint(m.Segments)})
				}
				return list
			}
			if diff := cmp.Diff(rows(with), rows(without)); diff != "" {
				t.Error(diff)
			}
			if len(without.Info().Problems) != 0 {
				t.Error(without.Info().Problems)
			}
			s.t = t
			known, _ := s.checkTruth(without, false)
			if known == 0 {
				t.Error("no memory is known")
			}
			checkCode(t, without)
		})
	}
}

// The threads of a core are those that gdb sees, with its registers.
func TestThreadsAreGDBs(t *testing.T) {
	oracle.Tools(t, "gdb")
	s := start(t, 20, "0x33", false)
	gcorePath := s.gcore()
	for producer, path := range map[string]string{"kernel": s.crash(), "gcore": gcorePath} {
		t.Run(producer, func(t *testing.T) {
			script := `python
print("CURRENT", gdb.selected_thread().ptid[1])
for t in gdb.selected_inferior().threads():
    t.switch()
    print("THREAD", t.ptid[1], int(gdb.parse_and_eval("(unsigned long)$pc")), int(gdb.parse_and_eval("(unsigned long)$sp")))
end
`
			file := filepath.Join(t.TempDir(), "script.gdb")
			if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			out := oracle.Run(t, "gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", s.exe, path, "-x", file)
			want := map[string][2]uint64{}
			for _, m := range regexp.MustCompile(`(?m)^THREAD (\d+) (\d+) (\d+)`).FindAllStringSubmatch(out, -1) {
				pc, _ := strconv.ParseUint(m[2], 10, 64)
				sp, _ := strconv.ParseUint(m[3], 10, 64)
				want[m[1]] = [2]uint64{pc, sp}
			}
			if len(want) != 21 {
				t.Fatalf("gdb saw %d threads\n%s", len(want), out)
			}
			c := openReal(t, path)
			got := map[string][2]uint64{}
			for _, th := range c.Threads() {
				pc, _ := th.Registers.Uint64(16, sdk.LittleEndian)
				sp, _ := th.Registers.Uint64(7, sdk.LittleEndian)
				got[th.ID] = [2]uint64{pc, sp}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			current := regexp.MustCompile(`(?m)^CURRENT (\d+)`).FindStringSubmatch(out)
			if current == nil || c.Threads()[0].ID != current[1] {
				t.Errorf("the first thread is %s, gdb's is %v", c.Threads()[0].ID, current)
			}
		})
	}
}

// The modules of a core are those that eu-unstrip sees, where it sees them, and
// with its build IDs.
func TestModulesAreElfutils(t *testing.T) {
	oracle.Tools(t, "eu-unstrip")
	s := start(t, 2, "0x33", true)
	s.look()
	gcorePath := s.gcore()
	for producer, path := range map[string]string{"kernel": s.crash(), "gcore": gcorePath} {
		t.Run(producer, func(t *testing.T) {
			want, got := map[uint64]string{}, map[uint64]string{}
			line := regexp.MustCompile(`(?m)^0x([0-9a-f]+)\+0x[0-9a-f]+ ([0-9a-f]+)@`)
			for _, m := range line.FindAllStringSubmatch(oracle.Run(t, "eu-unstrip", "-n", "--core", path), -1) {
				start, _ := strconv.ParseUint(m[1], 16, 64)
				want[start] = m[2]
			}
			c := openReal(t, path)
			for _, m := range c.Modules() {
				got[lowest(m)] = fmt.Sprintf("%x", m.BuildID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			// The library's file is deleted: it is a module, with an object only
			// where the core has all of it. gdb dumps what has no file.
			if diff := cmp.Diff(s.loaded(), loadedOf(c)); diff != "" {
				t.Error(diff)
			}
			for _, m := range c.Modules() {
				if strings.HasSuffix(m.Path, "/library.so") && ((m.Object != nil) != (producer == "gcore") || !strings.Contains(m.Problem, "no such file")) {
					t.Errorf("%s: object %v, problem %q", m.Path, m.Object != nil, m.Problem)
				}
			}
		})
	}
}

// Of a core with everything dumped, code whose file is gone is read from memory.
func TestDeletedLibraryOfACoreWithEverything(t *testing.T) {
	s := start(t, 1, "0x7f", true)
	s.look()
	c := openReal(t, s.crash(), object.Finder{Sysroot: t.TempDir()})
	s.checkTruth(c, false)
	if len(c.Modules()) != len(s.loaded()) {
		t.Errorf("%d modules, expected %d", len(c.Modules()), len(s.loaded()))
	}
	for _, m := range c.Modules() {
		if m.Object == nil || m.File != "" {
			t.Errorf("%s: %s", m.Path, m.Problem)
			continue
		}
		if !bytes.Equal(m.Object.BuildID(), m.BuildID) {
			t.Errorf("%s: build ID %x, expected %x", m.Path, m.Object.BuildID(), m.BuildID)
		}
		if len(m.Object.EHFrames()) == 0 {
			t.Errorf("%s: no .eh_frame", m.Path)
		}
		symbols, err := m.Object.Symbols()
		if err != nil || len(symbols) == 0 {
			t.Errorf("%s: %d symbols, %v", m.Path, len(symbols), err)
		}
		if strings.HasSuffix(m.Path, "/library.so") {
			found := false
			for _, symbol := range symbols {
				found = found || symbol.Name == "library_text"
			}
			if !found {
				t.Errorf("%s: no symbol library_text", m.Path)
			}
		}
	}
	checkCode(t, c)
}

// What is left of a core that was cut (by ulimit -c, or a full disk) is used.
func TestRealCoreThatWasCut(t *testing.T) {
	s := start(t, 5, "0x33", false)
	s.look()
	data, err := os.ReadFile(s.crash())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []int{1, 10, 50, 99} {
		path := filepath.Join(s.dir, fmt.Sprintf("cut.%d", part))
		if err := os.WriteFile(path, data[:len(data)/100*part], 0o600); err != nil {
			t.Fatal(err)
		}
		c := openReal(t, path)
		known, unknown := s.checkTruth(c, false)
		t.Logf("%d%%: %d bytes known, %d unknown, %d modules, problems %q", part, known, unknown, len(c.Modules()), c.Info().Problems)
		if len(c.Threads()) != 6 || !c.Threads()[0].Crashed || c.Info().Signal != 11 {
			t.Errorf("%d%%: %d threads, signal %d", part, len(c.Threads()), c.Info().Signal)
		}
		if p := strings.Join(c.Info().Problems, "\n"); !strings.Contains(p, fmt.Sprintf("the file is cut at offset %#x", len(data)/100*part)) {
			t.Errorf("%d%%: problems %q", part, p)
		}
		for _, m := range c.Modules() {
			if m.Path == s.exe && m.Object == nil {
				t.Errorf("%d%%: %s", part, m.Problem)
			}
		}
		if len(c.Modules()) < 3 {
			t.Errorf("%d%%: %d modules", part, len(c.Modules()))
		}
		checkCode(t, c)
	}
}

func TestCoreIsReadConcurrently(t *testing.T) {
	s := start(t, 1, "0x33", false)
	c := openReal(t, s.crash())
	var wait sync.WaitGroup
	for range 8 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			buf := make([]byte, 64)
			for _, m := range c.Modules() {
				for _, seg := range m.Segments {
					c.ReadMemory(0, seg.Start, buf)
					c.Mapped(seg.Start)
				}
			}
			c.Info()
		}()
	}
	wait.Wait()
}

// A core that is cut while it is open gives errors, and the process lives on.
func TestCoreThatIsCutWhileItIsOpen(t *testing.T) {
	b := little64()
	b.parts = []part{{typ: 1, address: 0x10000, data: bytes.Repeat([]byte("x"), 1<<20)}}
	path := filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(path, b.core(), 0o600); err != nil {
		t.Fatal(err)
	}
	c := openReal(t, path)
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8)
	if n, err := c.ReadMemory(0, 0x10000+1<<19, buf); n != 0 || err == nil || !strings.Contains(err.Error(), object.ErrFileShrank.Error()) {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := c.ReadMemory(0, 0x10000, buf); err != nil {
		t.Error(err)
	}
}

// lowest is the first address of a module.
func lowest(m *target.Module) uint64 {
	address := ^uint64(0)
	for _, s := range m.Segments {
		address = min(address, s.Start)
	}
	return address
}
