// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// processName returns the name of a living process; "" where it cannot be read.
func processName(pid int) string { return nameIn(filepath.Join("/proc", strconv.Itoa(pid))) }

// nameIn returns the name in a folder of /proc, of a process or of a thread.
func nameIn(dir string) string {
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(name), "\n")
}

// ownProcesses returns the processes in a folder like /proc that this user may look at. Threads
// of the kernel and processes that have ended have no stacks and no executable, and are left out.
func ownProcesses(dir string) []named {
	self := strconv.Itoa(os.Getpid())
	return processes(dir, func(id string) bool {
		return id != self && mayTrace(filepath.Join(dir, id))
	})
}

// processes returns the processes or threads in a folder of /proc that are wanted, in the order
// of their IDs, as far as there is time.
func processes(dir string, isWanted func(id string) bool) (list []named) {
	begun := time.Now()
	folder, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	ids := make([]int, 0, len(names))
	for _, name := range names {
		if id, err := strconv.Atoi(name); err == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		text := strconv.Itoa(id)
		if time.Since(begun) > maxCompletion || len(list) == maxOffered {
			break
		}
		if name := nameIn(filepath.Join(dir, text)); name != "" && isWanted(text) {
			list = append(list, named{text, name})
		}
	}
	return list
}

// mayTrace reports whether this user may look at the process of a folder of /proc: only then is the
// link to its executable readable.
func mayTrace(dir string) bool {
	_, err := os.Readlink(filepath.Join(dir, "exe"))
	return err == nil
}

// maxComm is how many bytes of a name the kernel keeps.
const maxComm = 15

// processesNamed returns the living processes of a name, except this one. A process has several names: the
// kernel's, which is its main thread's (PyTorch 2.4 sets it), the name of the file that it executes, and the
// one that it was called by. Threads of the kernel, and processes that have ended, are left out.
func processesNamed(name string) (pids []int) {
	return slices.DeleteFunc(livingProcesses(), func(pid int) bool {
		return !isCalled(filepath.Join("/proc", strconv.Itoa(pid)), name)
	})
}

// livingProcesses returns all processes except this one. Threads of the kernel, and processes that have ended,
// have no command line, and are left out.
func livingProcesses() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline")); err == nil && len(line) > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// isCalled reports whether the process of a folder of /proc has a name. The kernel cuts its own: of a script,
// whose executable is the interpreter, the first argument is whole.
func isCalled(dir, name string) bool {
	comm := nameIn(dir)
	if comm == name {
		return true
	}
	exe, _ := os.Readlink(filepath.Join(dir, "exe"))
	line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	words := strings.SplitN(string(line), "\x00", 3)
	files := []string{strings.TrimSuffix(exe, " (deleted)"), words[0]}
	if len(words) > 1 && len(name) > maxComm && comm == name[:maxComm] {
		files = append(files, words[1])
	}
	return slices.ContainsFunc(files, func(path string) bool { return path != "" && filepath.Base(path) == name })
}

// leadersOf returns the processes of threads, each once.
func leadersOf(tids []int) (pids []int, err error) {
	for _, tid := range tids {
		data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(tid), "status"))
		if err != nil {
			return nil, fmt.Errorf("--tid %d: there is no such thread", tid)
		}
		_, rest, _ := strings.Cut(string(data), "\nTgid:")
		line, _, _ := strings.Cut(rest, "\n")
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("--tid %d: its status says no process", tid)
		}
		if !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
