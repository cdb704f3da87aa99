// SPDX-License-Identifier: Apache-2.0

// Package confine removes from a process, or a thread, all that a plugin does not need:
// descriptors, memory and other limits, capabilities, files (Landlock) and system calls
// (seccomp). The executable of plugins links it, so it imports nothing that only the
// engine's side needs.
package confine

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrUsage is wrapped by the errors of ExecMain and ServeMain about a wrong command line.
var ErrUsage = errors.New("wrong usage")

// execution is the command line of `plugin exec`.
type execution struct {
	socketDir string // the only directory that the plugin may write to
	dataDir   string // a directory that the plugin may read, with its contents; "": none
	parent    int    // process that must still be the parent; 0: any
	reportFD  int    // descriptor of the report; 0: standard error
	build     string // the build that this executable must have; "": any
	sha256    string // hash that the executable must have; "": not checked
	path      string
	args      []string
}

// Report is the message of `plugin exec` to the process that started it: the parts of the
// sandbox that this system lacks, and the reason that the plugin was not executed. The
// descriptor it is written to closes on the exec, so that a plugin can add nothing to it,
// and its end without an Error says that the exec succeeded.
type Report struct {
	Missing []string `json:"missing,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// ExecMain is `unwindd plugin exec [flags] -- PATH ARGS...`. It confines this process and
// then executes PATH in its place, so it returns only with an error. The sandbox is, in
// this order: death with the parent; no descriptors except 0, 1 and 2; rlimits; no
// capabilities; no new privileges; Landlock; a seccomp filter. Parts that the system
// lacks are reported and skipped.
//
//	--socket-dir DIR  the only directory that the plugin may write to
//	--data-dir DIR    a directory that the plugin may read, with its contents
//	--parent PID      fail unless PID is the parent
//	--report-fd N     write the report, JSON, to descriptor N; else one line of JSON to standard error
//	--build BUILD     fail unless this executable is of the build
//	--sha256 HEX      fail unless the executable has this hash
func ExecMain(args []string) error {
	e, err := parseExecution(args)
	if err != nil {
		return err
	}
	out := io.Writer(os.Stderr)
	if e.reportFD > 0 {
		if out, err = reportFile(e.reportFD); err != nil {
			return fmt.Errorf("plugin exec: %w", err)
		}
	}
	report := func(r Report) {
		line, err := json.Marshal(r)
		if e.reportFD == 0 {
			line, err = json.Marshal(map[string]any{
				"@level": "warn", "@module": "unwindd.sandbox", "@message": "the sandbox is incomplete", "missing": r.Missing,
			})
		}
		if err == nil {
			// There is no other place to report a failure of this.
			_, _ = out.Write(append(line, '\n'))
		}
	}
	if err = checkBuild(e.build); err == nil {
		err = e.run(func(missing []string) { report(Report{Missing: missing}) })
	}
	if err != nil && e.reportFD > 0 {
		report(Report{Error: err.Error()})
	}
	return fmt.Errorf("plugin exec: %w", err)
}

// reportFile is the file that reports are written to.
func reportFile(fd int) (*os.File, error) {
	f := os.NewFile(uintptr(fd), "report")
	if fd < ReportFD || f == nil {
		return nil, fmt.Errorf("%w: --report-fd %d is no descriptor, expected 3 or more", ErrUsage, fd)
	}
	return f, nil
}

func parseExecution(args []string) (*execution, error) {
	var e execution
	f := flag.NewFlagSet("plugin exec", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&e.socketDir, "socket-dir", "", "")
	f.StringVar(&e.dataDir, "data-dir", "", "")
	f.IntVar(&e.parent, "parent", 0, "")
	f.IntVar(&e.reportFD, "report-fd", 0, "")
	f.StringVar(&e.build, "build", "", "")
	f.StringVar(&e.sha256, "sha256", "", "")
	if err := f.Parse(args); err != nil {
		return nil, fmt.Errorf("plugin exec: %w: %w", ErrUsage, err)
	}
	if f.NArg() == 0 {
		return nil, fmt.Errorf("plugin exec: %w: expected [--socket-dir DIR] -- PATH [ARG]", ErrUsage)
	}
	if e.reportFD != 0 && e.reportFD < 3 {
		return nil, fmt.Errorf("plugin exec: %w: --report-fd %d, expected 3 or more", ErrUsage, e.reportFD)
	}
	e.path, e.args = f.Arg(0), f.Args()
	path, err := filepath.Abs(e.path)
	if err != nil {
		return nil, fmt.Errorf("plugin exec: %w", err)
	}
	e.path = path
	return &e, nil
}
