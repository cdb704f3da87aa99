// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/sdk"
)

var errTest = errors.New("the register file is on fire")

// commands are what a test plugin can be ordered to do. What the sandbox
// should forbid answers the error it got, or "done".
var commands = map[string]func(argument string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error){
	"echo": said,
	"say": func(text string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		fmt.Println("out", text)
		fmt.Fprintln(os.Stderr, "err", text)
		return said(text, req)
	},
	"pid": func(_ string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		return said(strconv.Itoa(os.Getpid()), req)
	},
	"hang": func(string, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) { select {} },
	"exit": func(string, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) { os.Exit(7); return nil, nil },
	"crash": func(string, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	},
	"error": func(string, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) { return nil, errTest },
	"panic": func(string, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) { panic(errTest) },
	// In a goroutine of its own, where nobody recovers it.
	"panic-elsewhere": func(string, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		go breakDown([]string{"s0", "s1"}, 7)
		select {}
	},
	"none": func(string, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) { return nil, nil },
	"sleep": func(d string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		n, err := time.ParseDuration(d)
		time.Sleep(n)
		if err != nil {
			return nil, err
		}
		return said("slept", req)
	},
	"burn": func(d string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		n, err := time.ParseDuration(d)
		if err != nil {
			return nil, err
		}
		burn(n)
		return said("burnt", req)
	},
	// So many threads, for a while.
	"threads": func(argument string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		n, err := strconv.Atoi(argument)
		if err != nil {
			return nil, err
		}
		var there sync.WaitGroup
		for range n {
			there.Add(1)
			go func() {
				runtime.LockOSThread()
				there.Done()
				syscallSleep(3 * time.Second)
			}()
		}
		there.Wait()
		time.Sleep(time.Duration(10*n) * time.Millisecond)
		return said(argument, req)
	},
	"data-folder": func(_ string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		return said(sdk.DataFolder(), req)
	},
	"outside": func(_ string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		return &sdk.DisassembleAnswer{Instructions: []sdk.Instruction{{Address: req.Address + uint64(len(req.Code)), Size: 1, Text: "nop"}}}, nil
	},
	"environment": func(_ string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		var names []string
		for _, e := range os.Environ() {
			name, _, _ := strings.Cut(e, "=")
			names = append(names, name)
		}
		return said(strings.Join(names, " "), req)
	},
	"descriptors": func(_ string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		// Only those that name a file: sockets and pipes are the plugin's own.
		var files []string
		for fd := range 64 {
			if target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && filepath.IsAbs(target) && !strings.HasPrefix(target, "/dev/") {
				files = append(files, target)
			}
		}
		return said(strings.Join(files, " "), req)
	},

	// So many threads at once each read a file.
	"on-threads": func(argument string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		number, path, _ := strings.Cut(argument, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		var ready, done sync.WaitGroup
		ready.Add(n)
		done.Add(n)
		results := make([]string, n)
		for i := range n {
			go func() {
				runtime.LockOSThread()
				ready.Done()
				ready.Wait()
				answer, _ := tried(func(path string) error { _, err := os.ReadFile(path); return err })(path, req)
				results[i] = answer.Instructions[0].Text
				done.Done()
				select {} // for who looks at the process's threads
			}()
		}
		done.Wait()
		return said(strings.Join(results, " "), req)
	},

	"read":   tried(func(path string) error { _, err := os.ReadFile(path); return err }),
	"list":   tried(func(path string) error { _, err := os.ReadDir(path); return err }),
	"write":  tried(func(path string) error { f, err := os.OpenFile(path, os.O_WRONLY, 0); closeIf(f, err); return err }),
	"create": tried(func(path string) error { return os.WriteFile(path, nil, 0o600) }),
	"fill": tried(func(name string) error {
		return os.WriteFile(filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), name), make([]byte, 1<<20), 0o600)
	}),
	"remove": tried(os.Remove),
	"mkdir": tried(func(name string) error {
		return os.Mkdir(filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), name), 0o700)
	}),
	"truncate": tried(func(path string) error { return os.Truncate(path, 0) }),
	"chmod":    tried(func(path string) error { return os.Chmod(path, 0o777) }),
	"touch":    tried(func(path string) error { return os.Chtimes(path, time.Now(), time.Now()) }),
	"exec":     tried(func(path string) error { return exec.Command(path, "-c", "true").Run() }),
	// Without a fork in between: what a plugin would become is sandboxed too,
	// and is not its to choose.
	"become": tried(func(path string) error { return syscall.Exec(path, []string{path, "-c", "sleep 100"}, nil) }),
	"dial": tried(func(to string) error {
		network, address, _ := strings.Cut(to, ":")
		c, err := net.DialTimeout(network, address, time.Second)
		closeIf(c, err)
		return err
	}),
	"listen": tried(func(to string) error {
		network, address, _ := strings.Cut(to, ":")
		l, err := net.Listen(network, address)
		closeIf(l, err)
		return err
	}),
	"send": tried(func(path string) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrUnix{Name: path})
	}),
	"signal":     tried(func(pid string) error { return toProcess(pid, func(p int) error { return unix.Kill(p, 0) }) }),
	"signal-all": tried(func(string) error { return unix.Kill(-1, 0) }),
	"ptrace":     tried(func(pid string) error { return toProcess(pid, unix.PtraceAttach) }),
	"peek": tried(func(pid string) error {
		return toProcess(pid, func(p int) error {
			b := make([]byte, 1)
			_, err := unix.ProcessVMReadv(p, []unix.Iovec{{Base: &b[0], Len: 1}}, []unix.RemoteIovec{{Base: 1, Len: 1}}, 0)
			return err
		})
	}),
	"nice": tried(func(pid string) error {
		return toProcess(pid, func(p int) error { return unix.Setpriority(unix.PRIO_PROCESS, p, 19) })
	}),
	"nice-user": tried(func(uid string) error {
		return toProcess(uid, func(u int) error { return unix.Setpriority(unix.PRIO_USER, u, 0) })
	}),
	"pin": tried(func(pid string) error { return toProcess(pid, pin) }),
	"policy": tried(func(pid string) error {
		return toProcess(pid, func(p int) error {
			return unix.SchedSetAttr(p, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: 19}, 0)
		})
	}),
	"scheduler": tried(func(pid string) error {
		return toProcess(pid, func(p int) error { return schedule(unix.SYS_SCHED_SETSCHEDULER, p) })
	}),
	"parameters": tried(func(pid string) error {
		return toProcess(pid, func(p int) error { return schedule(unix.SYS_SCHED_SETPARAM, p) })
	}),
	"ioprio": tried(func(pid string) error {
		return toProcess(pid, func(p int) error {
			_, _, e := unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, uintptr(p), 3<<13) // the idle class
			return errorOf(e)
		})
	}),
	"locks": tried(func(pid string) error {
		return toProcess(pid, func(p int) error {
			var head, size uintptr
			_, _, e := unix.Syscall(unix.SYS_GET_ROBUST_LIST, uintptr(p), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&size)))
			return errorOf(e)
		})
	}),
	"own":       tried(func(pid string) error { return toProcess(pid, func(p int) error { return onSocket(p, ownByFcntl) }) }),
	"own-ioctl": tried(func(pid string) error { return toProcess(pid, func(p int) error { return onSocket(p, ownByIoctl) }) }),
	// Has SIGKILL sent to a process when a socket can be read.
	"own-and-wake": tried(func(pid string) error { return toProcess(pid, func(p int) error { return onSocket(p, wake) }) }),
	"shared":       tried(func(string) error { return mapMemory(unix.MAP_SHARED) }),
	"growing":      tried(func(string) error { return mapMemory(unix.MAP_PRIVATE | unix.MAP_GROWSDOWN) }),
	"hoard":        func(string, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) { return nil, hoard() },
	"private":      tried(func(string) error { return mapMemory(unix.MAP_PRIVATE) }),
	"outlive":      tried(func(string) error { return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0) }),
	"unshare":      tried(func(string) error { return unix.Unshare(unix.CLONE_NEWUSER) }),
	"mount":        tried(func(string) error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") }),
	"chroot":       tried(func(string) error { return unix.Chroot("/") }),
	"bpf":          tried(func(string) error { _, _, e := unix.Syscall(unix.SYS_BPF, 0, 0, 0); return e }),
	"io_uring":     tried(func(string) error { _, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0); return e }),
	"perf":         tried(func(string) error { _, err := unix.PerfEventOpen(&unix.PerfEventAttr{}, 0, -1, -1, 0); return err }),
	"memfd":        tried(func(string) error { _, err := unix.MemfdCreate("x", 0); return err }),
	"keyctl": tried(func(string) error {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, false)
		return err
	}),
	"future": tried(func(string) error { _, _, e := unix.Syscall(unix.SYS_RSEQ_SLICE_YIELD+1, 0, 0, 0); return e }),
	"raise": tried(func(string) error {
		l := syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		return syscall.Setrlimit(unix.RLIMIT_NOFILE, &l)
	}),
	"privilege": tried(func(string) error { return privileges() }),
	"thread": tried(func(string) error {
		done := make(chan error)
		go func() {
			runtime.LockOSThread()
			done <- nil
		}()
		return <-done
	}),
	"signal-self": tried(func(string) error { return unix.Tgkill(os.Getpid(), os.Getpid(), 0) }),
}

// hoard has more and more memory that may not be written any more, which
// RLIMIT_DATA does not count.
func hoard() error {
	for range 16 {
		b, err := unix.Mmap(-1, 0, 64<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return err
		}
		for i := 0; i < len(b); i += os.Getpagesize() {
			b[i] = 1
		}
		if err := unix.Mprotect(b, unix.PROT_READ); err != nil {
			return err
		}
	}
	time.Sleep(time.Hour)
	return nil
}

//go:noinline
func breakDown(registers []string, n int) { panic("no register after " + registers[n]) }

// burn uses the processor for so long.
func burn(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var began, now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &began)
	for now = began; now.Nano()-began.Nano() < int64(d); {
		_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
	}
}

func tried(f func(string) error) func(string, *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	return func(argument string, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
		err := f(argument)
		var errno syscall.Errno
		switch {
		case err == nil:
			return said("done", req)
		case errors.As(err, &errno):
			return said(unix.ErrnoName(errno), req)
		}
		return said(err.Error(), req)
	}
}

func closeIf(c interface{ Close() error }, err error) {
	if err == nil {
		c.Close()
	}
}

// errorOf makes an error of a number that may be 0.
func errorOf(e syscall.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

// pin sets the processors of a process to those that it has.
func pin(pid int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		return err
	}
	return unix.SchedSetaffinity(pid, &set)
}

// schedule sets the policy of a process, or its parameters: the ordinary ones.
func schedule(call uintptr, pid int) error {
	var priority int32
	args := [2]uintptr{0, uintptr(unsafe.Pointer(&priority))}
	if call == unix.SYS_SCHED_SETPARAM {
		args[0] = args[1]
	}
	_, _, e := unix.Syscall(call, uintptr(pid), args[0], args[1])
	return errorOf(e)
}

// onSocket has a socket to do something with.
func onSocket(pid int, f func(fd, pid int) error) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	return f(fds[0], pid)
}

// wake has a process killed through a socket, if it may.
func wake(fd, pid int) error {
	for _, set := range []struct{ command, to int }{
		{unix.F_SETOWN, pid}, {unix.F_SETSIG, int(unix.SIGKILL)}, {unix.F_SETFL, unix.O_ASYNC | unix.O_NONBLOCK},
	} {
		if _, err := unix.FcntlInt(uintptr(fd), set.command, set.to); err != nil {
			return err
		}
	}
	if err := unix.Shutdown(fd, unix.SHUT_RDWR); err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond)
	return nil
}

// ownByFcntl and ownByIoctl have the signals of a file sent to a process.
func ownByFcntl(fd, pid int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETOWN, pid)
	return err
}

// Numbers of the kernel that package unix does not have.
const (
	ioprioWhoProcess = 1
	fiosetown        = 0x8901
)

func ownByIoctl(fd, pid int) error { return unix.IoctlSetPointerInt(fd, fiosetown, pid) }

// mapMemory maps, and unmaps, a mebibyte that no file has.
func mapMemory(flags int) error {
	b, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|flags)
	if err != nil {
		return err
	}
	return unix.Munmap(b)
}

func toProcess(pid string, f func(int) error) error {
	n, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	return f(n)
}

// privileges is an error that says which capabilities the process has.
func privileges() error {
	var head = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	if data != [2]unix.CapUserData{} {
		return fmt.Errorf("capabilities %+v", data)
	}
	v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err == nil && v != 1 {
		err = fmt.Errorf("no_new_privs is %d", v)
	}
	return err
}

// syscallSleep sleeps and keeps its thread.
func syscallSleep(d time.Duration) {
	at := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&at, nil)
}
