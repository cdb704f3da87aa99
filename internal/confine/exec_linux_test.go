// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/internal/confine/confinetest"
)

// The test binary is unwindd where it is started as "plugin exec".
func TestMain(m *testing.M) {
	confinetest.Main()
	if len(os.Args) > 2 && os.Args[1] == "plugin" && os.Args[2] == "exec" {
		fmt.Fprintln(os.Stderr, ExecMain(os.Args[3:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// self is the test binary.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// answerOf runs a filter in a virtual machine, as the kernel would.
func answerOf(t *testing.T, c calls) func(arch, nr uint32, args ...uint64) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(c.program())
	if err != nil {
		t.Fatal(err)
	}
	return func(arch, nr uint32, args ...uint64) uint32 {
		// The machine reads big-endian words.
		data := make([]byte, 64)
		put := func(at int, v uint32) {
			data[at], data[at+1], data[at+2], data[at+3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
		}
		put(0, nr)
		put(4, arch)
		for i, a := range args {
			put(16+8*i, uint32(a))
			put(20+8*i, uint32(a>>32))
		}
		n, err := vm.Run(data)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(n)
	}
}

// TestCallsOfPlugins has each kind of system call.
func TestCallsOfPlugins(t *testing.T) {
	const pid = 4242
	run := answerOf(t, pluginCalls(pid))
	const allow = unix.SECCOMP_RET_ALLOW
	errno := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	for _, c := range []struct {
		name string
		got  uint32
		want uint32
	}{
		{"another architecture", run(auditArch+1, unix.SYS_READ), unix.SECCOMP_RET_KILL_PROCESS},
		{"read", run(auditArch, unix.SYS_READ), allow},
		{"openat", run(auditArch, unix.SYS_OPENAT), allow},
		{"execve", run(auditArch, unix.SYS_EXECVE), allow},
		{"futex", run(auditArch, unix.SYS_FUTEX), allow},
		{"accept4", run(auditArch, unix.SYS_ACCEPT4), allow},
		{"mmap", run(auditArch, unix.SYS_MMAP), allow},
		{"rseq", run(auditArch, unix.SYS_RSEQ), allow},
		{"yields its slice", run(auditArch, unix.SYS_RSEQ_SLICE_YIELD), allow},
		{"newer", run(auditArch, unix.SYS_RSEQ_SLICE_YIELD+1), errno(unix.ENOSYS)},
		{"in no list", run(auditArch, unix.SYS_IO_SETUP), errno(unix.ENOSYS)},
		{"shared memory of System V", run(auditArch, unix.SYS_SHMGET), errno(unix.ENOSYS)},
		{"a file in memory", run(auditArch, unix.SYS_MEMFD_CREATE), errno(unix.ENOSYS)},
		{"another user", run(auditArch, unix.SYS_SETUID), errno(unix.EPERM)},
		{"x32", run(auditArch, 0x40000000|unix.SYS_READ), errno(unix.ENOSYS)},
		{"ptrace", run(auditArch, unix.SYS_PTRACE), errno(unix.EPERM)},
		{"connect", run(auditArch, unix.SYS_CONNECT), errno(unix.EPERM)},
		{"bpf", run(auditArch, unix.SYS_BPF), errno(unix.ENOSYS)},
		{"socket unix", run(auditArch, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK), allow},
		{"socket unix seqpacket", run(auditArch, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_SEQPACKET), allow},
		{"socket unix datagram", run(auditArch, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), errno(unix.EACCES)},
		{"socket inet", run(auditArch, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM), errno(unix.EACCES)},
		{"socket netlink", run(auditArch, unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW), errno(unix.EACCES)},
		{"socketpair datagram", run(auditArch, unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM), errno(unix.EACCES)},
		{"high half of an argument is not looked at", run(auditArch, unix.SYS_SOCKET, 1<<32|unix.AF_UNIX, unix.SOCK_STREAM), allow},
		{"thread", run(auditArch, unix.SYS_CLONE, unix.CLONE_THREAD|unix.CLONE_VM|unix.CLONE_SIGHAND), allow},
		{"process", run(auditArch, unix.SYS_CLONE, uint64(unix.SIGCHLD)), errno(unix.EPERM)},
		{"vfork by clone", run(auditArch, unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uint64(unix.SIGCHLD)), errno(unix.EPERM)},
		{"clone3", run(auditArch, unix.SYS_CLONE3), errno(unix.ENOSYS)},
		{"signal self", run(auditArch, unix.SYS_KILL, pid), allow},
		{"signal thread", run(auditArch, unix.SYS_TGKILL, pid, 4243), allow},
		{"signal other", run(auditArch, unix.SYS_KILL, pid+1), errno(unix.EPERM)},
		{"signal all", run(auditArch, unix.SYS_KILL, ^uint64(0)), errno(unix.EPERM)},
		{"signal group", run(auditArch, unix.SYS_KILL, 0), errno(unix.EPERM)},
		{"prctl name", run(auditArch, unix.SYS_PRCTL, unix.PR_SET_NAME), allow},
		{"prctl death signal", run(auditArch, unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG), errno(unix.EPERM)},
		{"limits, own", run(auditArch, unix.SYS_PRLIMIT64, 0), allow},
		{"limits, own by number", run(auditArch, unix.SYS_PRLIMIT64, pid), allow},
		{"limits, other", run(auditArch, unix.SYS_PRLIMIT64, 1), errno(unix.EPERM)},
		{"affinity, own", run(auditArch, unix.SYS_SCHED_SETAFFINITY, 0), allow},
		{"affinity, own by number", run(auditArch, unix.SYS_SCHED_SETAFFINITY, pid), allow},
		{"affinity, other", run(auditArch, unix.SYS_SCHED_SETAFFINITY, pid+1), errno(unix.EPERM)},
		{"affinity, asked", run(auditArch, unix.SYS_SCHED_GETAFFINITY, pid+1), allow},
		{"attributes, own", run(auditArch, unix.SYS_SCHED_SETATTR, 0), allow},
		{"attributes, other", run(auditArch, unix.SYS_SCHED_SETATTR, 1), errno(unix.EPERM)},
		{"policy, other", run(auditArch, unix.SYS_SCHED_SETSCHEDULER, 1), errno(unix.EPERM)},
		{"parameters, other", run(auditArch, unix.SYS_SCHED_SETPARAM, 1), errno(unix.EPERM)},
		{"priority, own", run(auditArch, unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0), allow},
		{"priority, own by number", run(auditArch, unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, pid), allow},
		{"priority, other", run(auditArch, unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 1), errno(unix.EPERM)},
		{"priority, group", run(auditArch, unix.SYS_SETPRIORITY, unix.PRIO_PGRP, 0), errno(unix.EPERM)},
		{"priority, user", run(auditArch, unix.SYS_SETPRIORITY, unix.PRIO_USER, 0), errno(unix.EPERM)},
		{"I/O priority, own", run(auditArch, unix.SYS_IOPRIO_SET, 1, 0), allow},
		{"I/O priority, other", run(auditArch, unix.SYS_IOPRIO_SET, 1, 1), errno(unix.EPERM)},
		{"I/O priority, user", run(auditArch, unix.SYS_IOPRIO_SET, 3, 0), errno(unix.EPERM)},
		{"owner of a file", run(auditArch, unix.SYS_FCNTL, 5, unix.F_SETOWN), errno(unix.EPERM)},
		{"owner of a file, extended", run(auditArch, unix.SYS_FCNTL, 5, unix.F_SETOWN_EX), errno(unix.EPERM)},
		{"signal of a file", run(auditArch, unix.SYS_FCNTL, 5, unix.F_SETSIG), errno(unix.EPERM)},
		{"flags of a file", run(auditArch, unix.SYS_FCNTL, 5, unix.F_SETFL), allow},
		{"owner of a socket", run(auditArch, unix.SYS_IOCTL, 5, unix.SIOCSPGRP), errno(unix.EPERM)},
		{"size of a terminal", run(auditArch, unix.SYS_IOCTL, 5, unix.TIOCGWINSZ), allow},
		{"memory", run(auditArch, unix.SYS_MMAP, 0, 4096, 3, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE), allow},
		{"memory, shared", run(auditArch, unix.SYS_MMAP, 0, 4096, 3, unix.MAP_SHARED|unix.MAP_ANON), errno(unix.ENOMEM)},
		{"memory, shared and validated", run(auditArch, unix.SYS_MMAP, 0, 4096, 3, unix.MAP_SHARED_VALIDATE|unix.MAP_ANON), errno(unix.ENOMEM)},
		{"memory, growing", run(auditArch, unix.SYS_MMAP, 0, 4096, 3, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_GROWSDOWN), errno(unix.ENOMEM)},
		{"memory of a file, shared", run(auditArch, unix.SYS_MMAP, 0, 4096, 1, unix.MAP_SHARED, 5), allow},
		{"personality, asked", run(auditArch, unix.SYS_PERSONALITY, 0xffffffff), allow},
		{"personality", run(auditArch, unix.SYS_PERSONALITY, 0x0400000), errno(unix.EPERM)},
	} {
		if c.got != c.want {
			t.Errorf("%s: %#x, expected %#x", c.name, c.got, c.want)
		}
	}
	for who, c := range map[string]calls{"a plugin": pluginCalls(pid), "a worker": workerCalls()} {
		onceEach(t, who, c)
	}
}

// onceEach reports calls that stand twice: the second would never be reached.
func onceEach(t *testing.T, who string, c calls) {
	t.Helper()
	seen := map[uint32]string{}
	note := func(nr uint32, why string) {
		if first, ok := seen[nr]; ok {
			t.Errorf("system call %d of %s stands twice: %q and %q", nr, who, first, why)
		}
		seen[nr] = why
	}
	for _, list := range c.conditions {
		for _, one := range list {
			note(one.call, one.why)
		}
	}
	for _, list := range c.allowed {
		for _, g := range list {
			for _, nr := range g.calls {
				note(nr, g.why)
			}
		}
	}
	refused := map[uint32]bool{}
	for _, list := range c.refused {
		for _, g := range list {
			for _, nr := range g.calls {
				if refused[nr] {
					t.Errorf("system call %d is refused twice to %s: %q", nr, who, g.why)
				}
				refused[nr] = true
			}
		}
	}
}

// TestCallsOfWorkers has the system calls by which a worker differs from a plugin.
func TestCallsOfWorkers(t *testing.T) {
	run := answerOf(t, workerCalls())
	const allow = unix.SECCOMP_RET_ALLOW
	errno := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	for name, c := range map[string]struct{ got, want uint32 }{
		"starts a process":           {run(auditArch, unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uint64(unix.SIGCHLD)), allow},
		"connects":                   {run(auditArch, unix.SYS_CONNECT), allow},
		"ends a plugin":              {run(auditArch, unix.SYS_KILL, 1), allow},
		"the network":                {run(auditArch, unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM), errno(unix.EACCES)},
		"datagrams":                  {run(auditArch, unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_DGRAM), errno(unix.EACCES)},
		"drives another process":     {run(auditArch, unix.SYS_PTRACE), errno(unix.EPERM)},
		"changes mounts":             {run(auditArch, unix.SYS_MOUNT), errno(unix.EPERM)},
		"takes a process's file":     {run(auditArch, unix.SYS_PIDFD_GETFD), errno(unix.EPERM)},
		"in no list":                 {run(auditArch, unix.SYS_IO_SETUP), errno(unix.ENOSYS)},
		"rings":                      {run(auditArch, unix.SYS_IO_URING_SETUP), errno(unix.ENOSYS)},
		"a file in memory":           {run(auditArch, unix.SYS_MEMFD_CREATE), errno(unix.ENOSYS)},
		"memory that is not counted": {run(auditArch, unix.SYS_MMAP, 0, 4096, 3, unix.MAP_SHARED|unix.MAP_ANON), errno(unix.ENOMEM)},
	} {
		if c.got != c.want {
			t.Errorf("%s: %#x, expected %#x", name, c.got, c.want)
		}
	}
}

func TestExecSaysWhyItCannot(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	sum, err := HashFile(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no path", []string{"--socket-dir", dir}, "wrong usage"},
		{"a bad flag", []string{"--frobnicate", "--", "/bin/true"}, "wrong usage"},
		{"nothing there", []string{"--", filepath.Join(dir, "none")}, "no such file"},
		{"a directory", []string{"--", dir}, "not a regular file"},
		{"no program", []string{"--", text}, "exec format error"},
		{"no program, by its hash", []string{"--sha256", sum, "--", text}, "exec format error"},
		{"another hash", []string{"--sha256", strings.Repeat("0", 64), "--", text}, "has SHA-256 " + sum},
		{"another parent", []string{"--parent", "1", "--", "/bin/true"}, "it died before its plugin started"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "another parent" && os.Getpid() == 1 {
				t.Skip("this process is 1")
			}
			out, err := exec.Command(self(t), append([]string{"plugin", "exec"}, c.args...)...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.want) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestExecRunsPrograms(t *testing.T) {
	confinetest.Need(t)
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho script $1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	echo, err := exec.LookPath("echo")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := HashFile(echo)
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"a program":             {"--", echo, "script", "x"},
		"a program by its hash": {"--sha256", sum, "--", echo, "script", "x"},
		"a script":              {"--", script, "x"},
	} {
		out, err := exec.Command(self(t), append([]string{"plugin", "exec", "--socket-dir", dir}, args...)...).CombinedOutput()
		if err != nil || string(out) != "script x\n" {
			t.Errorf("%s: %v: %q", name, err, out)
		}
	}
}

func TestExecReportsWhatIsMissing(t *testing.T) {
	confinetest.Need(t)
	for what, want := range map[string]string{
		"landlock": "landlock: this kernel cannot restrict files",
		"seccomp":  "seccomp: this kernel has no filters",
	} {
		t.Run(what, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self(t), "without", what, "plugin", "exec", "--report-fd", "3", "--", "/bin/sh", "-c", "echo ran >&2")
			cmd.ExtraFiles = []*os.File{w}
			out, err := cmd.CombinedOutput()
			w.Close()
			if err != nil || string(out) != "ran\n" {
				t.Fatalf("%v: %s", err, out)
			}
			var report Report
			if err := json.NewDecoder(r).Decode(&report); err != nil {
				t.Fatal(err)
			}
			if len(report.Missing) == 0 || !strings.Contains(report.Missing[0], want) || report.Error != "" {
				t.Errorf("report: %+v", report)
			}
		})
	}
}
