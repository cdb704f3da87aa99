// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bufio"
	"context"

	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// asTracer is the environment of a test program that stops a process, says so, and does no
// more; asCopier of one that copies a process for ever.
const (
	asTracer = "UNWINDD_TEST_STOP"
	asCopier = "UNWINDD_TEST_COPY"
)

func TestMain(m *testing.M) {
	if pid, err := strconv.Atoi(os.Getenv(asTracer)); err == nil {
		c := &copied{pid: pid}
		c.hold()
	}
	if pid, err := strconv.Atoi(os.Getenv(asCopier)); err == nil {
		copyForEver(pid)
	}
	os.Exit(m.Run())
}

// hold stops a process and never lets it go.
func (c *copied) hold() {
	runtime.LockOSThread()
	t := &tracer{pid: c.pid, deadline: 10 * time.Second}
	if err := t.stop(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	time.Sleep(time.Hour)
}

func copyForEver(pid int) {
	for i := 0; ; i++ {
		t, err := Open(pid, options())
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = t.Close()
		if i == 0 {
			fmt.Println("ready")
		}
	}
}

func options() Options {
	return Options{Describe: func(object.ELFMachine) (*sdk.Description, error) { return x86_64.New().Describe(context.Background()) }}
}

// victim builds the program that is stopped.
func victim(t testing.TB) (program, library string) {
	t.Helper()
	oracle.Tools(t, "gcc")
	dir := t.TempDir()
	program, library = filepath.Join(dir, "victim"), filepath.Join(dir, "libvictim.so")
	common := []string{"-g", "-O1", "-fno-optimize-sibling-calls"}
	oracle.Run(t, "gcc", append(common, "-pthread", "-o", program, "testdata/victim.c", "-ldl")...)
	oracle.Run(t, "gcc", append(common, "-DLIBRARY", "-shared", "-fPIC", "-o", library, "testdata/victim.c")...)
	return program, library
}

// start starts a program and waits until it says that it is ready, if it does.
func start(t testing.TB, cmd *exec.Cmd, saysReady bool) *exec.Cmd {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if saysReady {
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%v said %q, %v", cmd.Args, line, err)
		}
	}
	return cmd
}

// open opens a process and checks that it goes on afterwards.
func openOne(t testing.TB, pid int) *Target {
	t.Helper()
	p, err := Open(pid, options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	goesOn(t, pid)
	return p
}

// goesOn fails a test where a thread of a process is stopped or traced.
func goesOn(t testing.TB, pid int) {
	t.Helper()
	if states := states(pid); strings.ContainsAny(states, "tT") {
		t.Fatalf("process %d: states of its threads are %s after it was let go", pid, states)
	}
	if s, err := readStatus(fmt.Sprintf("/proc/%d", pid)); err == nil && s.tracer != 0 {
		t.Fatalf("process %d is traced by %d", pid, s.tracer)
	}
}

// states are the states of the threads of a process, a letter each.
func states(pid int) (list string) {
	threads, _ := threadsOf(pid)
	for _, id := range threads {
		if s, err := readStatus(fmt.Sprintf("/proc/%d/task/%d", pid, id)); err == nil {
			list += string(s.state)
		}
	}
	return list
}

func TestThreadsAreCopiedAndGoOn(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "100"), true)
	p := openOne(t, cmd.Process.Pid)
	info := p.Info()
	if len(info.Problems) > 0 {
		t.Errorf("problems: %q", info.Problems)
	}
	if info.Kind != trace.LiveProcess || info.Signal != 0 || info.Facts.Crash != nil {
		t.Errorf("kind %q, signal %d, crash %v", info.Kind, info.Signal, info.Facts.Crash)
	}
	f := info.Facts.Process
	if f.ID != int64(cmd.Process.Pid) || f.Executable != program || f.Command != program+" threads 100" {
		t.Errorf("process %+v", f)
	}
	if f.User == nil || int(*f.User) != os.Geteuid() {
		t.Errorf("user %v", f.User)
	}
	if since := f.Kept.Sub(f.Created); since < -time.Second || since > time.Minute {
		t.Errorf("it was stopped %v after its start", since)
	}
	if len(p.Threads()) != 101 {
		t.Fatalf("%d threads, expected 101", len(p.Threads()))
	}
	d, _ := x86_64.New().Describe(context.Background())
	for _, th := range p.Threads() {
		sp, ok := th.Registers.Uint64(d.SP, d.ByteOrder)
		pc, hasPC := th.Registers.Uint64(d.PC, d.ByteOrder)
		if !ok || !hasPC || th.Name != "victim" || th.Problem != "" {
			t.Fatalf("thread %s %q: sp %v, pc %v, %s", th.ID, th.Name, ok, hasPC, th.Problem)
		}
		if _, executable := p.Mapped(pc); !executable {
			t.Errorf("thread %s: PC %#x is in no code", th.ID, pc)
		}
		var word [8]byte
		if _, err := p.ReadMemory(locexpr.DefaultSpace, sp-128, word[:]); err != nil {
			t.Errorf("thread %s: its red zone: %v", th.ID, err)
		}
	}
	all, longest := p.Stopped()
	t.Logf("100 threads were stopped for %v, the longest one for %v", all, longest)
	if longest > all || all <= 0 {
		t.Errorf("stopped for %v, the longest thread for %v", all, longest)
	}
}

func TestMemoryThatWasNotCopiedIsNotKnown(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "1"), true)
	p := openOne(t, cmd.Process.Pid)
	maps, err := readFile(fmt.Sprintf("/proc/%d/maps", cmd.Process.Pid), nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseMaps(maps)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		m := &list[i]
		if m.path != "[heap]" {
			continue
		}
		var b [8]byte
		if n, err := p.ReadMemory(locexpr.DefaultSpace, m.start, b[:]); n != 0 || !errors.Is(err, target.ErrNoMemory) {
			t.Errorf("memory of the heap at %#x: %d bytes, %v", m.start, n, err)
		}
		if mapped, executable := p.Mapped(m.start); !mapped || executable {
			t.Errorf("the heap is mapped: %v, executable: %v", mapped, executable)
		}
		return
	}
	t.Error("the process has no heap")
}

func TestTheStackThatWasLeftForAnotherIsCopied(t *testing.T) {
	program, _ := victim(t)
	for _, mode := range []string{"handler", "coroutine"} {
		t.Run(mode, func(t *testing.T) { testLeftStack(t, exec.Command(program, mode)) })
	}
}

func testLeftStack(t *testing.T, cmd *exec.Cmd) {
	cmd = start(t, cmd, true)
	p := openOne(t, cmd.Process.Pid)
	th := p.Threads()[0]
	d, _ := x86_64.New().Describe(context.Background())
	sp, _ := th.Registers.Uint64(d.SP, d.ByteOrder)
	maps, err := readFile(fmt.Sprintf("/proc/%d/maps", cmd.Process.Pid), nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := parseMaps(maps)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(m mapping) bool { return m.path == "[stack]" })
	if i < 0 || find(list, sp) == &list[i] {
		t.Fatalf("the thread executes at %#x, on no stack of its own", sp)
	}
	var word [8]byte
	if _, err := p.ReadMemory(locexpr.DefaultSpace, list[i].end-64, word[:]); err != nil {
		t.Errorf("the end of the first stack: %v", err)
	}
}

func TestAModuleOfADeletedFileIsRead(t *testing.T) {
	program, library := victim(t)
	cmd := start(t, exec.Command(program, "call", library), true)
	for _, name := range []string{program, library} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		// Another file has the name now.
		if err := os.WriteFile(name, []byte("nothing"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := openOne(t, cmd.Process.Pid)
	for _, want := range []string{program, library} {
		found := false
		for _, m := range p.Modules() {
			if m.Path != want {
				continue
			}
			found = true
			if m.Object == nil || !m.Confirmed() || m.Problem != "" || !strings.HasPrefix(m.File, "/proc/") {
				t.Errorf("%s: file %q, problem %q", m.Path, m.File, m.Problem)
			} else if m.Object.Section(".debug_info") == nil {
				t.Errorf("%s has no .debug_info: it is not the file", m.Path)
			}
		}
		if !found {
			t.Errorf("no module %s", want)
		}
	}
}

func TestADeletedFileThatCannotBeOpenedIsReadFromMemory(t *testing.T) {
	program, library := victim(t)
	cmd := start(t, exec.Command(program, "call", library), true)
	if err := os.Remove(library); err != nil {
		t.Fatal(err)
	}
	c, o := outlineOf(t, cmd.Process.Pid)
	isLost := func(m *mapping) bool { return m.path == library+deletedSuffix }
	if err := errors.Join(c.prepare(isLost), c.copyStopped(isLost)); err != nil {
		t.Fatal(err)
	}
	o.describe(c)
	p, err := open(c, o, options())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, m := range p.Modules() {
		if m.Path == library {
			if m.Object == nil || m.File != "" || len(m.Object.Programs()) == 0 {
				t.Errorf("%s: file %q, problem %q", m.Path, m.File, m.Problem)
			}
			return
		}
	}
	t.Errorf("no module %s", library)
}

// outlineOf are the beginnings of what read makes.
func outlineOf(t *testing.T, pid int) (*copied, *outline) {
	t.Helper()
	c := &copied{pid: pid, lead: pid}
	var err error
	if c.machine, err = readMachine(c.dir() + "/exe"); err != nil {
		t.Fatal(err)
	}
	c.description, _ = x86_64.New().Describe(context.Background())
	s, err := readStatus(c.dir())
	if err != nil {
		t.Fatal(err)
	}
	return c, &outline{status: s}
}

func TestAProcessWhoseFirstThreadHasEnded(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "leader"), true)
	for range 1000 {
		if strings.HasPrefix(states(cmd.Process.Pid), "Z") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	p := openOne(t, cmd.Process.Pid)
	if len(p.Threads()) != 1 || len(p.Modules()) < 3 || len(p.Info().Problems) > 0 {
		t.Errorf("%d threads, %d modules, problems %q", len(p.Threads()), len(p.Modules()), p.Info().Problems)
	}
}

func TestAStoppedProcessStaysStopped(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "3"), true)
	pid := cmd.Process.Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitForStates(t, pid, "TTTT")
	p, err := Open(pid, options())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	waitForStates(t, pid, "TTTT")
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	waitForStates(t, pid, "SSSS")
}

// waitForStates waits until the threads of a process have these states.
func waitForStates(t testing.TB, pid int, want string) {
	t.Helper()
	for range 10000 {
		if states(pid) == want {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("process %d: states %s, expected %s", pid, states(pid), want)
}

func TestTheEndOfATracerLetsItsThreadsGo(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "20"), true)
	pid := cmd.Process.Pid
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), asTracer+"="+strconv.Itoa(pid))
	start(t, holder, true)
	if got, want := states(pid), strings.Repeat("t", 21); got != want {
		t.Fatalf("states %s while the process is stopped, expected %s", got, want)
	}
	if _, err := Open(pid, options()); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "traces it already") {
		t.Errorf("a process that is traced: %v", err)
	}
	if err := holder.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitForStates(t, pid, strings.Repeat("S", 21))
}

func TestACopierThatIsKilledLeavesNobodyStopped(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "50"), true)
	pid := cmd.Process.Pid
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	for i := range rounds {
		copier := exec.Command(os.Args[0])
		copier.Env = append(os.Environ(), asCopier+"="+strconv.Itoa(pid))
		start(t, copier, true)
		time.Sleep(time.Duration(i*137%1000) * time.Microsecond)
		if err := copier.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = copier.Wait()
		waitForStates(t, pid, strings.Repeat("S", 51))
	}
}

// The IDs of new threads are lower than the process's once IDs were given out up to the
// highest: such a thread may end while memory is copied by it.
func TestMemoryIsCopiedByTheThreadOfTheProcessID(t *testing.T) {
	threads, err := threadsOf(os.Getpid())
	if err != nil || len(threads) < 2 {
		t.Fatalf("%d threads, %v, expected some", len(threads), err)
	}
	slices.Reverse(threads)
	if got := liveThread(os.Getpid(), threads); got != os.Getpid() {
		t.Errorf("thread %d of %d, expected the one of that ID", got, os.Getpid())
	}
}

func TestThreadsThatStartAndEnd(t *testing.T) {
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "churn"), true)
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	several, starved := 0, 0
	for range rounds {
		p := openOne(t, cmd.Process.Pid)
		for _, th := range p.Threads() {
			switch {
			case th.IsUnstopped: // others work on this machine, too
				starved++
			case th.Problem != "":
				t.Fatalf("thread %s: %s", th.ID, th.Problem)
			}
		}
		if len(p.Info().Problems) > 0 && starved == 0 {
			t.Fatalf("problems: %q", p.Info().Problems)
		}
		if len(p.Threads()) > 1 {
			several++
		}
		_ = p.Close()
	}
	t.Logf("%d of %d times several threads lived, %d threads got no processor", several, rounds, starved)
	if starved*10 > rounds {
		t.Errorf("%d threads did not stop in %d rounds", starved, rounds)
	}
}

func TestAProcessThatExecutesAnotherProgram(t *testing.T) {
	program, _ := victim(t)
	rounds := 40
	if testing.Short() {
		rounds = 5
	}
	read, changed := 0, 0
	for range rounds {
		cmd := start(t, exec.Command(program, "exec", "50"), false)
		for range 5 {
			p, err := Open(cmd.Process.Pid, options())
			switch {
			case errors.Is(err, errChanged):
				changed++
				continue
			case err != nil:
				t.Fatal(err)
			}
			read++
			for _, m := range p.Modules() {
				if m.Object == nil {
					t.Errorf("module %s: %s", m.Path, m.Problem)
				}
			}
			for _, th := range p.Threads() {
				if th.Problem != "" && !th.IsUnstopped {
					t.Errorf("thread %s: %s", th.ID, th.Problem)
				}
			}
			if len(p.Info().Problems) > 0 && !slices.ContainsFunc(p.Threads(), func(th *trace.Thread) bool { return th.IsUnstopped }) {
				t.Errorf("problems: %q", p.Info().Problems)
			}
			_ = p.Close()
		}
		// The last one executes no other: it waits, alone.
		waitForStates(t, cmd.Process.Pid, "S")
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Logf("%d were read, %d changed too often", read, changed)
	if read == 0 {
		t.Error("none was read")
	}
}

func TestAProcessOfAnotherRootDirectory(t *testing.T) {
	oracle.Tools(t, "gcc", "unshare", "chroot")
	if os.Geteuid() != 0 {
		oracle.Missing(t, "root, who may change the root directory")
	}
	program, _ := victim(t)
	root := t.TempDir()
	oracle.Run(t, "gcc", "-g", "-static", "-pthread", "-o", filepath.Join(root, "apart"), "testdata/victim.c")
	if err := os.WriteFile(filepath.Join(root, "hidden"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := start(t, exec.Command("chroot", root, "/apart", "threads", "1"), true)
	p := openOne(t, cmd.Process.Pid)
	checkFile(t, p, filepath.Join(root, "apart"), "/apart")

	// Another mount namespace, in which a directory hides under a mount.
	dir := filepath.Dir(program)
	script := fmt.Sprintf("mount --bind %s %s && exec %s/apart threads 1", root, dir, dir)
	cmd = start(t, exec.Command("unshare", "--mount", "sh", "-c", script), true)
	p = openOne(t, cmd.Process.Pid)
	checkFile(t, p, filepath.Join(dir, "apart"), "/root"+filepath.Join(dir, "apart"))
}

func checkFile(t *testing.T, p *Target, path, file string) {
	t.Helper()
	for _, m := range p.Modules() {
		if m.Path != path {
			continue
		}
		if m.Object == nil || !m.Confirmed() || !strings.HasSuffix(m.File, file) {
			t.Errorf("%s: file %q, expected one that ends in %s; problem %q", path, m.File, file, m.Problem)
		}
		return
	}
	t.Errorf("no module %s", path)
}

func TestWhatHasNoStacksOrMayNotBeStopped(t *testing.T) {
	program, _ := victim(t)
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = zombie.Wait() }()
	waitForStates(t, zombie.Process.Pid, "Z")
	check := func(pid int, is error, text string) {
		t.Helper()
		_, err := Open(pid, options())
		if !errors.Is(err, is) || !strings.Contains(err.Error(), text) {
			t.Errorf("process %d: %v, expected %v ... %s", pid, err, is, text)
		}
	}
	check(zombie.Process.Pid, ErrNoStacks, "zombie")
	check(os.Getpid(), ErrDenied, "itself")
	check(1<<22+5, ErrEnded, "no such process")
	check(-1, ErrEnded, "no such process")
	check(0, ErrEnded, "no such process")
	if s, err := readStatus("/proc/2"); err == nil && s.isKernel {
		check(2, ErrNoStacks, "kernel")
	}
	cmd := start(t, exec.Command(program, "threads", "1"), true)
	gone := cmd.Process.Pid
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	check(gone, ErrEnded, "no such process")
}

func TestAnotherUsersProcess(t *testing.T) {
	if os.Geteuid() != 0 {
		oracle.Missing(t, "root, who may become another user")
	}
	program, _ := victim(t)
	cmd := start(t, exec.Command(program, "threads", "1"), true)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The other user may not read the folder of the test's own program.
	dir, err := os.MkdirTemp("/tmp", "unwindd-process")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.Chmod(dir, 0o755), copyFile(self, filepath.Join(dir, "copier"))); err != nil { //nolint:gosec // another user executes it
		t.Fatal(err)
	}
	other := exec.Command(filepath.Join(dir, "copier"))
	other.Dir = "/"
	other.Env = append(os.Environ(), asCopier+"="+strconv.Itoa(cmd.Process.Pid))
	other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, _ := other.CombinedOutput()
	if want := "it is of user 0, and this process of user 65534"; !strings.Contains(string(out), want) || !strings.Contains(string(out), "CAP_SYS_PTRACE") {
		t.Errorf("it said %q, expected %q", out, want)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // it is executed
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
