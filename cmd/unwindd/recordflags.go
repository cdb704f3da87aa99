// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// recordFlags are the flags of recordings that `unwindd profile` makes itself.
type recordFlags struct {
	pids      []string // or names
	threads   []string // IDs
	duration  time.Duration
	frequency int
	recorder  string
	keep      string
	idle      bool
	live      bool
	native    bool
	repeat    int
	every     time.Duration

	tids []int // threads
	// rootFiles are root directories of processes, open as long as files are looked up there.
	rootFiles []*os.File
	changed   map[string]bool // the flags that were given
}

// Defaults of sampling a live process: for a second.
const (
	defaultRepeat = 100
	defaultEvery  = 10 * time.Millisecond
	// defaultFrequency is perf's: 8 MB a second of a processor that executes, by 16 KiB of stack.
	// It is prime, so that it is not in step with what programs do regularly.
	defaultFrequency = 499
	maxFrequency     = 100_000
)

// The values of --recorder.
var recorders = []string{"auto", "perf", "live"}

func (f *recordFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.pids, "pid", "p", nil, "record the living process `PID`, or all of this name; may be repeated")
	flags.StringArrayVar(&f.threads, "tid", nil, "record only the thread `TID`; may be repeated")
	flags.DurationVar(&f.duration, "duration", 0, "record for `DURATION`; 0: until it ends, or Ctrl-C")
	flags.IntVarP(&f.frequency, "frequency", "F", 0, fmt.Sprintf("take `N` samples a second; 0: %d by perf, %d else", defaultFrequency, time.Second/defaultEvery))
	flags.StringVar(&f.recorder, "recorder", recorders[0], "record by `NAME`: perf, live (threads are stopped), or auto: perf where it may")
	flags.StringVar(&f.keep, "keep", "", "keep the recording as `FILE`")
	flags.BoolVar(&f.idle, "idle", false, "record threads that wait, too, and what they wait for")
	flags.BoolVar(&f.native, "native", false, "record without the frames of language runtimes")
	flags.BoolVar(&f.live, "live", true, "with --live=false do not show the profile on the terminal while it is recorded")
	flags.Lookup("live").DefValue = "" // true
	flags.IntVar(&f.repeat, "repeat", defaultRepeat, "look at a living process `N` times")
	flags.DurationVar(&f.every, "every", defaultEvery, "look at a living process once in `DURATION`")
}

// recordOnly are the flags that need something to record.
var recordOnly = []string{"duration", "frequency", "recorder", "keep", "idle", "live", "native", "repeat", "every", "tid"}

// liveOnly are the flags that perf has nothing for.
var liveOnly = []string{"repeat", "every", "idle"}

// changedAmong returns the flags among names that were given.
func (f *recordFlags) changedAmong(names []string) (list []string) {
	for _, name := range names {
		if f.changed[name] {
			list = append(list, "--"+name)
		}
	}
	return list
}

// note notes which flags were given, by the command line or a configuration.
func (f *recordFlags) note(flags *pflag.FlagSet) {
	f.changed = map[string]bool{}
	flags.Visit(func(flag *pflag.Flag) { f.changed[flag.Name] = true })
}

// check refuses values that have no meaning.
func (f *recordFlags) check() error {
	wrong := func(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
	switch {
	case f.changed["repeat"] && f.repeat < 1:
		return wrong("--repeat %d: expected 1 or more", f.repeat)
	case f.every < 0:
		return wrong("--every %v: expected 0 or more", f.every)
	case f.duration < 0:
		return wrong("--duration %v: expected 0 or more", f.duration)
	case f.frequency < 0 || f.frequency > maxFrequency:
		return wrong("--frequency %d: expected 0 to %d", f.frequency, maxFrequency)
	case f.changed["every"] && f.frequency > 0:
		return wrong("--every and --frequency are both how often: expected one of them")
	case !slices.Contains(recorders, f.recorder):
		return wrong("--recorder %s: expected %s", f.recorder, strings.Join(recorders, ", "))
	case f.recorder == "perf" && len(f.changedAmong(liveOnly)) > 0:
		return wrong("%s: perf has no such thing: expected --recorder live", f.changedAmong(liveOnly)[0])
	case !f.takeThreads():
		return wrong("--tid %s: expected the ID of a thread", f.threads[len(f.tids)])
	case f.keep == stdoutName:
		return wrong("--keep -: expected a file, since the profile goes to standard output")
	}
	return nil
}

// takeThreads parses the IDs of threads, up to one that is none.
func (f *recordFlags) takeThreads() bool {
	for _, text := range f.threads {
		tid, err := strconv.Atoi(text)
		if err != nil || tid <= 0 {
			return false
		}
		f.tids = append(f.tids, tid)
	}
	return true
}

// interval is the time from one moment of the live recorder to the next.
func (f *recordFlags) interval() time.Duration {
	if f.frequency > 0 {
		return time.Second / time.Duration(f.frequency)
	}
	return f.every
}

// recordSubject is a program, or living processes, to record.
type recordSubject struct {
	program []string // with its arguments; none: living processes are
	path    string   // of the program
	pids    []int
	// isShort: it is unwindd profile PID, which looks at the process for a second by default.
	isShort bool
	// isStarted: the process is a program that was started, and is recorded with its children.
	isStarted bool
}

// isNone reports whether nothing is recorded.
func (s *recordSubject) isNone() bool { return len(s.program) == 0 && len(s.pids) == 0 }

// name names the subject in the profile and in messages.
func (s *recordSubject) name() string {
	if len(s.program) > 0 {
		return s.program[0]
	}
	texts := make([]string, len(s.pids))
	for i, pid := range s.pids {
		texts[i] = fmt.Sprintf("/proc/%d", pid)
	}
	return strings.Join(texts, ",")
}

// words names the subject in a sentence.
func (s *recordSubject) words() string {
	switch {
	case len(s.program) > 0:
		return s.program[0]
	case len(s.pids) > 1:
		return fmt.Sprintf("%d processes", len(s.pids))
	}
	text := fmt.Sprintf("process %d", s.pids[0])
	if name := processName(s.pids[0]); name != "" {
		text += " (" + name + ")"
	}
	return text
}

// subjectOf returns the subject to record, by the arguments; none where these are of a recording.
func (f *recordFlags) subjectOf(cmd *cobra.Command, args []string) (s recordSubject, err error) {
	isProgram := cmd.ArgsLenAtDash() == 0 && len(args) > 0
	switch {
	case len(f.pids) > 0 && len(args) > 0:
		return s, usageError{fmt.Errorf("--pid %s and %s: expected one of them", f.pids[0], args[0])}
	case len(f.pids) > 0:
		s.pids, err = processesOf(f.pids)
	case isProgram:
		s.program = args
		s.path, err = programOf(args[0])
	case len(args) == 1:
		if pid, ok := processID(args[0]); ok {
			s.pids, s.isShort = []int{pid}, true
		}
	case len(f.tids) > 0:
		s.pids, err = leadersOf(f.tids)
	}
	if err != nil || !s.isNone() {
		return s, err
	}
	if list := f.changedAmong(recordOnly); len(list) > 0 {
		return s, usageError{fmt.Errorf("%s: it is of what is recorded now: expected a living process, --pid PID, or -- PROGRAM", strings.Join(list, ", "))}
	}
	return s, nil
}

// statusError is an error with an exit status of its own.
type statusError struct {
	error
	status int
}

// Exit statuses of shells for programs that cannot be executed.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// programOf returns the path of a program.
func programOf(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil, errors.Is(err, exec.ErrDot):
		return cmp.Or(path, name), nil
	case isThere(name):
		return "", statusError{fmt.Errorf("%s: it cannot be executed: expected -- PROGRAM ARGS", name), exitNotExecutable}
	}
	return "", statusError{fmt.Errorf("%s: there is no such program", name), exitNotFound}
}

// processesOf returns the living processes of IDs and names, each once.
func processesOf(words []string) (pids []int, err error) {
	for _, word := range words {
		found := []int{}
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			found = append(found, pid)
		} else if found = processesNamed(word); len(found) == 0 {
			return nil, fmt.Errorf("--pid %s: no process has that name", word)
		}
		for _, pid := range found {
			if !isThere(fmt.Sprintf("/proc/%d", pid)) {
				return nil, fmt.Errorf("process %d: no such process", pid)
			}
			if !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}
