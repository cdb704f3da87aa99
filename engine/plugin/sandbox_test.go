// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/confine/confinetest"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestSandbox: a bundled plugin confines itself, a vendor's is confined. It comes
// to the same.
func TestSandbox(t *testing.T) {
	confinetest.Need(t)
	const environment = "UNWINDD_ARCHITECTURE_PLUGIN PLUGIN_MIN_PORT PLUGIN_MAX_PORT PLUGIN_PROTOCOL_VERSIONS PLUGIN_UNIX_SOCKET_DIR"
	o := Options{CallDeadline: 10 * time.Second}
	t.Run("bundled", func(t *testing.T) {
		testSandbox(t, testArchOf(t, good, o), environment)
	})
	t.Run("vendor", func(t *testing.T) {
		testSandbox(t, vendorArchOf(t, good, o), environment+" PLUGIN_CLIENT_CERT UNWINDD_PLUGIN_IDENTITY")
	})
}

// vendorArchOf is the architecture of a mode, as a vendor's executable.
func vendorArchOf(t *testing.T, md mode, o Options) *Arch {
	t.Helper()
	dir := t.TempDir()
	vendor(t, dir, string(md), string(md))
	o.Dirs = []string{dir}
	a, err := manager(t, o).Find("test-" + string(md))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func testSandbox(t *testing.T, a *Arch, environment string) {
	if _, err := obey(t, a, "echo x"); err != nil {
		t.Fatal(err)
	}
	if p := a.Problems(); len(p) > 0 {
		t.Errorf("the sandbox has holes on this kernel: %q", p)
	}
	before := a.Generation()
	home := t.TempDir()
	secret := filepath.Join(home, "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	// A service of this user, and the port of a server.
	service, err := net.Listen("unix", filepath.Join(shortDir(t), "service"))
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	abstract, err := net.Listen("unix", "@unwindd-test-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	parent, sleeper := strconv.Itoa(os.Getpid()), strconv.Itoa(startVictim(t))

	for _, c := range []struct{ command, want string }{
		// The user's files.
		{"read " + secret, "EACCES"},
		{"list " + home, "EACCES"},
		{"write " + secret, "EACCES"},
		{"write /etc/passwd", "EACCES"},
		{"read /etc/passwd", "EACCES"},
		{"create " + filepath.Join(home, "new"), "EACCES"},
		{"create /tmp/unwindd-sandbox-test", "EACCES"},
		{"remove " + secret, "EACCES"},
		{"truncate " + secret, "EPERM"},
		{"chmod " + secret, "EPERM"},
		{"touch " + secret, "EPERM"},
		{"read /proc/self/environ", "EACCES"},
		{"read /proc/" + parent + "/environ", "EACCES"},
		{"mkdir x", "EACCES"},
		{"fill x", "EFBIG"},
		// Others.
		{"dial tcp:" + port.Addr().String(), "EACCES"},
		{"dial udp:127.0.0.1:53", "EACCES"},
		{"listen tcp:127.0.0.1:0", "EACCES"},
		{"dial unix:" + service.Addr().String(), "EPERM"},
		{"dial unix:" + abstract.Addr().String(), "EPERM"},
		{"send " + service.Addr().String(), "EACCES"},
		{"signal " + parent, "EPERM"},
		{"signal " + sleeper, "EPERM"},
		{"signal-all", "EPERM"},
		{"ptrace " + parent, "EPERM"},
		{"ptrace " + sleeper, "EPERM"},
		{"peek " + sleeper, "EPERM"},
		{"nice " + sleeper, "EPERM"},
		{"nice-user " + strconv.Itoa(os.Getuid()), "EPERM"},
		{"pin " + sleeper, "EPERM"},
		{"policy " + sleeper, "EPERM"},
		{"scheduler " + sleeper, "EPERM"},
		{"parameters " + sleeper, "EPERM"},
		{"ioprio " + sleeper, "EPERM"},
		{"locks " + sleeper, "EPERM"},
		{"own " + sleeper, "EPERM"},
		{"own-ioctl " + sleeper, "EPERM"},
		// Memory that its limit does not count.
		{"shared", "ENOMEM"},
		{"growing", "ENOMEM"},
		// Processes.
		{"exec /bin/sh", "EPERM"},
		{"become /bin/sh", "EACCES"},
		{"outlive", "EPERM"},
		// The system.
		{"unshare", "EPERM"},
		{"mount", "EPERM"},
		{"chroot", "EPERM"},
		{"bpf", "ENOSYS"},
		{"io_uring", "ENOSYS"},
		{"perf", "ENOSYS"},
		{"memfd", "ENOSYS"},
		{"keyctl", "EPERM"},
		{"future", "ENOSYS"},
		{"raise", "EPERM"},
		// What runtimes need.
		{"privilege", "done"},
		{"thread", "done"},
		{"signal-self", "done"},
		{"nice 0", "done"},
		{"pin 0", "done"},
		{"policy 0", "done"},
		{"ioprio 0", "done"},
		{"private", "done"},
		{"list /usr/lib", "done"},
		{"write /dev/null", "done"},
		{"read /dev/null", "done"},
		{"descriptors", ""},
		{"environment", environment},
	} {
		got, err := obey(t, a, c.command)
		if err != nil {
			t.Errorf("%s: %v", c.command, err)
		} else if got != c.want {
			t.Errorf("%s: %s, expected %s", c.command, got, c.want)
		}
	}
	if g := a.Generation(); g != before {
		t.Errorf("generation %d: the plugin died of the questions", g)
	}
}

// TestEveryThreadIsConfined: what of the sandbox belongs to threads is on each that
// a bundled plugin has, whether the process began with it or made it later, and the
// rest of the engine's threads have nothing of it.
func TestEveryThreadIsConfined(t *testing.T) {
	confinetest.Need(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	m := manager(t, Options{Bundled: bundledTest(good)})
	a, err := m.Find("test-good")
	if err != nil {
		t.Fatal(err)
	}
	// Landlock shows in what a thread may do, the rest in its status.
	const count = 16
	got, err := obey(t, a, "on-threads "+strconv.Itoa(count)+" "+secret)
	if err != nil || got != strings.TrimSpace(strings.Repeat("EACCES ", count)) {
		t.Errorf("%d threads that read a file of the user: %q, %v", count, got, err)
	}
	want := map[string]string{"NoNewPrivs": "1", "Seccomp": "2", "CapEff": none, "CapPrm": none, "CapInh": none, "CapAmb": none}
	if os.Geteuid() == 0 {
		want["CapBnd"] = none // which only root may empty, and only root could gain by
	}
	threads := threadStates(t, a.PID())
	if len(threads) <= count {
		t.Errorf("%d threads, expected more than %d", len(threads), count)
	}
	for _, state := range threads {
		for name, value := range want {
			if got := statusValue(state, name); got != value {
				t.Errorf("%s: %s, expected %s in\n%s", name, got, value, state)
			}
		}
	}
	if n := confinedThreads(t); n != 1 {
		t.Errorf("%d threads of the engine are confined, expected the one that has the plugin", n)
	}
	m.Close()
	for range 100 {
		if confinedThreads(t) == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("a confined thread of the engine outlives its plugin")
}

// none is an empty set of capabilities.
const none = "0000000000000000"

// confinedThreads is how many threads of this process have given up privileges.
func confinedThreads(t *testing.T) (n int) {
	for _, state := range threadStates(t, os.Getpid()) {
		if statusValue(state, "NoNewPrivs") == "1" {
			n++
		}
	}
	return n
}

// threadStates are the states of a process's threads, as the kernel writes them.
func threadStates(t *testing.T, pid int) (states []string) {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(paths) == 0 {
		t.Fatalf("threads of process %d: %v", pid, err)
	}
	for _, path := range paths {
		if b, err := os.ReadFile(path); err == nil { // else it has ended since
			states = append(states, string(b))
		}
	}
	return states
}

func statusValue(state, name string) string {
	for line := range strings.Lines(state) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// startVictim starts a process that a plugin could harm: it has this user's ID
// and no capabilities, which would protect it.
func startVictim(t *testing.T) int {
	t.Helper()
	victim := exec.Command(self(t), "plugin", "exec", "--", "/bin/sleep", "100")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	for !strings.Contains(processState(t, victim.Process.Pid), "Name:\tsleep\n") {
		time.Sleep(5 * time.Millisecond)
	}
	return victim.Process.Pid
}

// TestProbesWorkWithoutSandbox is the other half of TestSandbox: what it sees
// denied is denied by the sandbox, not by something else.
func TestProbesWorkWithoutSandbox(t *testing.T) {
	home := t.TempDir()
	secret := filepath.Join(home, "secret")
	service, err := net.Listen("unix", filepath.Join(shortDir(t), "service"))
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	sleeper := strconv.Itoa(startVictim(t))
	for _, command := range []string{
		"nice " + sleeper, "pin " + sleeper, "policy " + sleeper, "scheduler " + sleeper, "parameters " + sleeper, "ioprio " + sleeper,
		"locks " + sleeper, "own " + sleeper, "own-ioctl " + sleeper, "shared", "growing",
		"create " + secret, "read " + secret, "list " + home, "write " + secret, "truncate " + secret, "chmod " + secret, "touch " + secret,
		"dial unix:" + service.Addr().String(), "listen tcp:127.0.0.1:0", "signal " + strconv.Itoa(os.Getpid()), "exec /bin/sh", "memfd", "remove " + secret,
	} {
		name, argument, _ := strings.Cut(command, " ")
		answer, err := commands[name](argument, order(command))
		if err != nil || answer.Instructions[0].Text != "done" {
			t.Errorf("%s: %v, %v", command, answer, err)
		}
	}
}

// shortDir is a directory whose path leaves room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestDescriptorsOfTheParentStayThere(t *testing.T) {
	confinetest.Need(t)
	// One without close-on-exec, as a shell leaves them.
	f, err := os.Open("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	a := testArchOf(t, good, Options{})
	if got, err := obey(t, a, "descriptors"); err != nil || got != "" {
		t.Errorf("the plugin has %q open: %v", got, err)
	}
}

func TestSocketDirectoryIsPrivateAndRemoved(t *testing.T) {
	a := testArchOf(t, good, Options{})
	if _, err := obey(t, a, "pid"); err != nil {
		t.Fatal(err)
	}
	s := a.transport.(*supervisor)
	for _, dir := range []string{s.current.dir.path, s.current.child.socketDir} {
		info, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %v", dir, info.Mode())
		}
	}
	dir := s.current.dir.path
	s.close()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func TestPeerIsChecked(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := checkPeer(path, os.Getpid()); err == nil || !strings.Contains(err.Error(), "no connection") {
		t.Errorf("without a connection: %v", err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := checkPeer(path, os.Getpid()); err != nil {
		t.Error(err)
	}
	if err := checkPeer(path, os.Getpid()+1); err == nil || !strings.Contains(err.Error(), "expected process") {
		t.Errorf("another process: %v", err)
	}
}

// TestLandlockAlone: where no filter is written for the machine, the newest
// versions of Landlock close what the filter closes elsewhere.
func TestLandlockAlone(t *testing.T) {
	confinetest.Need(t)
	if abi := confinetest.LandlockABI(); abi < 6 {
		oracle.Missing(t, "version %d of Landlock's interface has no scopes", abi)
	}
	abstract, err := net.Listen("unix", "@unwindd-test-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	sleeper := startVictim(t)
	for _, c := range []struct{ command, want string }{
		{"dial unix:" + abstract.Addr().String(), "EPERM"},
		{"dial tcp:" + port.Addr().String(), "EACCES"},
		{"signal " + strconv.Itoa(sleeper), "EPERM"},
		{"own-and-wake " + strconv.Itoa(sleeper), "done"}, // nothing arrives
		{"signal-self", "done"},
	} {
		out, err := exec.Command(self(t), "without", "seccomp", "plugin", "exec", "--", self(t), "try", c.command).Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, expected %s", c.command, got, err, c.want)
		}
	}
	if state := processState(t, sleeper); !strings.Contains(state, "S (sleeping)") {
		t.Errorf("the process that a socket's signals were sent to:\n%s", state)
	}
}

func TestIncompleteSandboxIsAProblem(t *testing.T) {
	confinetest.Need(t)
	dir := t.TempDir()
	vendor(t, dir, string(other), string(other))
	out, err := exec.Command(self(t), "without", "landlock", "problems", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{string(good), string(other)} {
		// Each is started twice.
		want := "plugin " + name + " runs with less of a sandbox: landlock: this kernel cannot restrict files (it has version 0 of the interface, expected 1 or later)\n"
		if n := strings.Count(string(out), want); n != 1 {
			t.Errorf("%s: it is said %d times in\n%s", name, n, out)
		}
	}
}

// problemsMain prints what comes of starting a bundled plugin and a vendor's, which
// is in a directory, twice each.
func problemsMain(dir string) {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	m, err := NewManager(Options{Self: path, Bundled: bundledTest(good), Dirs: []string{dir}})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	for _, name := range []mode{good, other} {
		a, err := m.Find("test-" + string(name))
		if err != nil {
			panic(err)
		}
		for range 2 {
			if _, err := a.Disassemble(context.Background(), order("echo x")); err != nil {
				panic(err)
			}
			_ = syscall.Kill(a.PID(), syscall.SIGKILL)
			gone(a.PID())
		}
		for _, p := range a.Problems() {
			fmt.Println(p)
		}
	}
}
