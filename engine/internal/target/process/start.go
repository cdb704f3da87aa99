// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/target"
)

const (
	// maxCommand bounds the command line.
	maxCommand = 64 << 10
	// maxStart bounds the words of a process's start: the kernel bounds them by a quarter of the stack, of
	// at most 24 MiB, and by 2 MiB unless that was changed.
	maxStart = 8 << 20
	// maxCgroup bounds the lines of its cgroups.
	maxCgroup = 64 << 10
)

// readStart reads how a process was started. dir is its folder in /proc. /proc has the words as they
// are: a program may have written over them (setproctitle).
func readStart(dir string) (s target.Start) {
	s.Command = words(dir + "/cmdline")
	s.Environment = words(dir + "/environ")
	if data, err := readFile(dir+"/cgroup", nil); err == nil {
		s.Cgroup = string(data[:min(len(data), maxCgroup)])
	}
	return s
}

// words reads a file of words, each with a NUL behind it. A program that wrote over its words often left
// several NULs at the end.
func words(path string) []string {
	data, err := readFile(path, nil)
	if err != nil {
		return nil
	}
	data = bytes.TrimRight(data[:min(len(data), maxStart)], "\x00")
	if len(data) == 0 {
		return nil
	}
	return strings.Split(string(data), "\x00")
}

// hostOf returns the name of the host that a process sees, which containers have of their own; "" where it is
// not known.
func hostOf(dir string) string {
	theirs, err := os.Stat(dir + "/ns/uts")
	ours, e := os.Stat("/proc/self/ns/uts")
	if err != nil || e != nil {
		return ""
	}
	if os.SameFile(theirs, ours) {
		name, _ := os.Hostname()
		return name
	}
	found := make(chan string)
	go func() {
		// The thread is in the other namespace from here on, so it ends with the goroutine.
		runtime.LockOSThread()
		found <- hostIn(dir + "/ns/uts")
	}()
	return <-found
}

// hostIn enters a namespace, which takes CAP_SYS_ADMIN, and returns the name there.
func hostIn(path string) string {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var name unix.Utsname
	if unix.Setns(fd, unix.CLONE_NEWUTS) != nil || unix.Uname(&name) != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Nodename[:])
}
