// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
)

// stdinName names standard input as a target.
const stdinName = "-"

// inputFlags are the flags that bound packed targets.
type inputFlags struct{ maxUnpacked byteSize }

func (f *inputFlags) add(flags *pflag.FlagSet) {
	flags.Var(&f.maxUnpacked, "max-unpacked", "a packed target, or one from standard input, has at most `SIZE` bytes: 500M, 200G; the default is 64G, and half of the disk that is free")
}

// byteSize is a number of bytes in the syntax of flags: each of K, M, G and T is 1024 times
// the one before.
type byteSize uint64

func (s *byteSize) String() string {
	if *s == 0 {
		return ""
	}
	n, unit := uint64(*s), 0
	for ; n%1024 == 0 && unit < 4; unit++ {
		n /= 1024
	}
	return strconv.FormatUint(n, 10) + []string{"", "K", "M", "G", "T"}[unit]
}

func (s *byteSize) Type() string { return "SIZE" }

func (s *byteSize) Set(text string) error {
	digits, shift := text, 0
	if last := len(text) - 1; strings.IndexAny(text, "KMGTkmgt") == last && last >= 0 {
		digits, shift = text[:last], 10*(1+strings.IndexByte("KMGT", strings.ToUpper(text)[last]))
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n == 0 || n > 1<<62>>shift {
		return errors.New("expected bytes, as 500M or 200G")
	}
	*s = byteSize(n << shift)
	return nil
}

// targetName is a target of the command line.
type targetName struct {
	path   string
	folder string // in which it was found; "": it was named itself
}

// targets returns the targets among the arguments, and sets the executable among them.
func (f *stackFlags) targets(args []string) (list []targetName, err error) {
	if list, err = f.findTargets(args, &f.exe, f.failOnCrash); err != nil {
		return nil, err
	}
	return list, f.checkTargets(list)
}

// findTargets returns the targets among arguments, and sets the executable among them: one beside
// other arguments is no target, as with debuggers. mayBeNone: files that are not there, and
// folders without targets, are no error.
func (g *globals) findTargets(args []string, executable *string, mayBeNone bool) (list []targetName, err error) {
	exe := ""
	for _, a := range args {
		info, statErr := os.Stat(a)
		switch {
		case a == stdinName:
			list = append(list, targetName{path: a})
		case statErr == nil && info.IsDir():
			found, err := g.targetsIn(a, mayBeNone)
			if err != nil {
				return nil, err
			}
			list = append(list, found...)
		case mayBeNone && isNothing(a, statErr):
			messages.Printf("unwindd: %s: it is not there, so nothing in it crashed\n", a)
		case len(args) > 1 && isExecutable(a):
			if exe != "" || *executable != "" {
				return nil, usageError{fmt.Errorf("%s and %s are executables: expected one, and its targets", cmp.Or(exe, *executable), a)}
			}
			exe = a
		default:
			list = append(list, targetName{path: a})
		}
	}
	if exe != "" {
		*executable = exe
	}
	if len(list) == 0 && !mayBeNone {
		return nil, usageError{fmt.Errorf("%s is an executable: expected a target too", exe)}
	}
	return list, g.checkStdin(list)
}

// checkStdin refuses standard input as several targets, and where it is a terminal.
func (g *globals) checkStdin(list []targetName) error {
	count := 0
	for _, n := range list {
		g.reads(n.path)
		if n.path == stdinName {
			count++
		}
	}
	switch {
	case count > 1:
		return usageError{errors.New("-: standard input is one target")}
	case count == 1 && term.IsTerminal(int(os.Stdin.Fd())):
		return usageError{errors.New("-: standard input is a terminal, expected a target")}
	}
	return nil
}

// isNothing reports whether a path, with the error of os.Stat, names neither a file nor a
// process.
func isNothing(path string, err error) bool {
	_, isProcess := processID(path)
	return errors.Is(err, os.ErrNotExist) && !isProcess
}

// isExecutable reports whether a path names an ELF executable or shared object.
func isExecutable(path string) bool {
	return engine.KindOf(path).IsProgram
}

// checkTargets refuses targets that have no meaning together.
func (f *stackFlags) checkTargets(list []targetName) error {
	if len(list) > 1 && f.gpuCore != "" {
		return usageError{fmt.Errorf("--gpu-core %s: expected one target, that it belongs to", f.gpuCore)}
	}
	return nil
}

// targetsIn returns the targets in a folder, in which there is one unless mayBeNone.
func (g *globals) targetsIn(dir string, mayBeNone bool) (list []targetName, err error) {
	paths, others, err := engine.TargetsIn(dir)
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		switch {
		case mayBeNone && errors.Is(other, os.ErrPermission):
			return nil, other // it may be of a crash
		case g.verbose:
			messages.Printf("unwindd: %v: left out\n", other)
		case errors.Is(other, os.ErrPermission):
			complain(other)
		}
	}
	if len(paths) == 0 && !mayBeNone {
		return nil, noTargets(dir, len(others))
	}
	for _, path := range paths {
		list = append(list, targetName{path, dir})
	}
	return list, nil
}

// noTargets is the error of a folder with a number of files of which none is a target.
func noTargets(dir string, files int) error {
	const elsewhere = "where the kernel puts cores is in /proc/sys/kernel/core_pattern"
	kind := engine.KindOf(dir)
	switch {
	case kind.What != "":
		return errors.New(kind.Sentence("stack", dir))
	case files == 0:
		return fmt.Errorf("%s: no file is in the folder, expected a core, a minidump or a snapshot (%s)", dir, elsewhere)
	}
	return fmt.Errorf("%s: none of its %d files is a core, a minidump or a snapshot (%s)", dir, files, elsewhere)
}

// openTarget opens the target of a name.
func openTarget(e *engine.Engine, path string) (*engine.Target, error) {
	if pid, ok := processID(path); ok {
		t, err := e.OpenProcess(pid)
		if err != nil && !isThere(fmt.Sprintf("/proc/%d", pid)) {
			err = fmt.Errorf("%w, and no file has that name", err)
		}
		return t, err
	}
	if path == stdinName || isPipe(path) {
		f := os.Stdin
		if path != stdinName {
			var err error
			if f, err = os.Open(path); err != nil {
				return nil, err
			}
			defer f.Close()
		}
		return e.OpenFile(f, path)
	}
	return e.Open(path)
}

// isPipe reports whether a path names an open pipe of this process: /dev/stdin, or a shell's
// <(command).
func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeNamedPipe != 0 && isDescriptor(path) || path == "/dev/stdin"
}

// printAll prints several targets one after another. It complains about a target that
// cannot be printed, goes on, and returns an error in the end.
func (f *stackFlags) printAll(ctx context.Context, e *engine.Engine, list []targetName, prepare preparer) error {
	unread, unwalked, printed := 0, 0, 0
	note := func(name targetName, err error) {
		switch {
		case name.folder != "" && errors.Is(err, engine.ErrUnknownTarget):
			if f.verbose {
				messages.Printf("unwindd: %v: left out\n", err)
			}
			return
		case errors.Is(err, trace.ErrNotWalked):
			unwalked++
		default:
			unread++
		}
		complain(err)
	}
	failed := func() error {
		switch {
		case unread > 0:
			return fmt.Errorf("%d of %d targets could not be printed", unread, len(list))
		case unwalked > 0:
			return fmt.Errorf("in %d of %d targets %w", unwalked, len(list), trace.ErrNotWalked)
		}
		return nil
	}
	parts := newSections(f, len(list))
	err := f.write(func(w *writer) error {
		for _, name := range list {
			parts.next()
			p, err := prepare(ctx, e, name.path)
			if err != nil {
				note(name, err)
				continue
			}
			if printed++; printed > 1 && f.format == "text" && !f.job.Signature {
				blank := report.NewPrinter(w)
				blank.Printf("\n")
				if err := blank.Flush(); err != nil {
					return err
				}
			}
			err = parts.write(ctx, p, w)
			p.close()
			if err != nil {
				return err
			}
			if err := p.unwalked(); err != nil {
				note(name, err)
			}
		}
		if printed == 0 {
			return failed()
		}
		return parts.end(w)
	})
	if printed == 0 {
		return err
	}
	return errors.Join(err, failed())
}
