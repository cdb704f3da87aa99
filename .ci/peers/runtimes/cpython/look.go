// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// looked has the frames of Python that a tool found in a process, by thread.
type looked struct {
	threads    map[int]*thread    // by ID
	problems   map[int]string     // of threads
	said       []string           // problems of the target
	exceptions map[int]*exception // of threads
	err        error
}

// document is the part of unwindd's JSON that has frames of Python.
type document struct {
	Target  struct{ Problems []string }
	Threads []struct {
		ID       string
		Name     string
		Problem  string
		Runtimes []struct {
			Runtime, Name string
			Exception     *exception
		}
		Frames []struct {
			Function string
			File     string
			Line     int
			Column   int
			Managed  *struct {
				Runtime string
				Kind    string
				Native  bool
			}
			Locals []variable
		}
		Stopped struct{ Reason, Detail string }
	}
}

// variable is a variable in unwindd's JSON.
type variable struct {
	Name, Kind, Type, Value, Status, Problem string
	Children                                 []variable
	More                                     uint64
	Deep                                     bool
}

// look has unwindd find the frames of a target.
func (w *work) look(target string) looked {
	out, err := output(w.unwindd, "stack", target, "--format", "json", "--no-fold", "--max-frames", "200000")
	if err != nil && len(out) == 0 {
		return looked{err: err}
	}
	return frames(out)
}

// frames reads the frames of Python in unwindd's JSON.
func frames(out []byte) looked {
	var d document
	if err := json.Unmarshal(out, &d); err != nil {
		return looked{err: err}
	}
	l := looked{threads: map[int]*thread{}, problems: map[int]string{}, said: d.Target.Problems, exceptions: map[int]*exception{}}
	for _, t := range d.Threads {
		id, _ := strconv.Atoi(t.ID)
		one := &thread{native: id}
		for _, f := range t.Frames {
			if f.Managed != nil && f.Managed.Runtime == "cpython" && f.Managed.Kind == "interpreted" {
				one.frames = append(one.frames, frame{f.Function, last(f.Function), f.File, f.Line, f.Column})
			}
		}
		l.threads[id] = one
		for _, r := range t.Runtimes {
			if r.Runtime == "cpython" && r.Name != "" {
				one.name = r.Name
			}
			if r.Exception != nil {
				l.exceptions[id] = r.Exception
			}
		}
		for _, p := range d.Target.Problems {
			if strings.Contains(p, t.ID) {
				l.problems[id] = p
			}
		}
	}
	return l
}

// last is the last part of a qualified name.
func last(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}

// tool is the path of a peer.
func tool(name string) string {
	return filepath.Join(peerFolder, "peers", "bin", name)
}

// peerFolder is the folder that has the peers.
var peerFolder string

// pySpy asks py-spy about a process.
func pySpy(pid int) looked {
	out, err := output(tool("py-spy"), "dump", "--pid", strconv.Itoa(pid), "--json")
	if err != nil {
		return looked{err: err}
	}
	var list []struct {
		ID     int    `json:"os_thread_id"`
		Name   string `json:"thread_name"`
		Frames []struct {
			Name, Filename string
			Line           int
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return looked{err: err}
	}
	l := looked{threads: map[int]*thread{}}
	for _, t := range list {
		one := &thread{native: t.ID, name: t.Name}
		for _, f := range t.Frames {
			one.frames = append(one.frames, frame{f.Name, last(f.Name), f.Filename, f.Line, 0})
		}
		l.threads[t.ID] = one
	}
	return l
}

var (
	stackThread = regexp.MustCompile(`^Traceback for thread ([0-9]+)`)
	stackFrame  = regexp.MustCompile(`^    \(Python\) File "(.*)", line ([0-9]+), in (.*?)(?: \(.*\))?$`)
)

// pystackProcess asks pystack about a process.
func pystackProcess(pid int) looked {
	return pystack("remote", "--no-block", strconv.Itoa(pid))
}

// pystackCore asks pystack about a core.
func pystackCore(i *interpreter, core string) looked {
	exe := i.argv[len(i.argv)-1]
	if len(i.loader) > 0 {
		exe = i.loader[0]
	}
	return pystack("core", core, exe)
}

// pystack reads what pystack prints: the outermost frame first.
func pystack(args ...string) looked {
	cmd := append([]string{"PYTHONPATH=" + filepath.Join(peerFolder, "peers"), "python3", "-m", "pystack"}, args...)
	out, err := output("env", cmd...)
	if err != nil {
		return looked{err: err}
	}
	l := looked{threads: map[int]*thread{}}
	var one *thread
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if m := stackThread.FindStringSubmatch(line); m != nil {
			id, _ := strconv.Atoi(m[1])
			one = &thread{native: id}
			l.threads[id] = one
		} else if m := stackFrame.FindStringSubmatch(line); m != nil && one != nil {
			number, _ := strconv.Atoi(m[2])
			one.frames = append([]frame{{m[3], last(m[3]), m[1], number, 0}}, one.frames...)
		}
	}
	if len(l.threads) == 0 {
		l.err = fmt.Errorf("pystack: %s", lastLine(string(out)))
	}
	return l
}

// havePeers says why a peer cannot be asked.
func havePeers() error {
	for _, name := range []string{"py-spy", "pystack"} {
		if _, err := exec.LookPath(tool(name)); err != nil {
			return err
		}
	}
	return nil
}
