// SPDX-License-Identifier: Apache-2.0

// Command cpython has many versions and builds of CPython execute programs that write which
// frames their threads have, by the interpreter itself and by faulthandler, and stop in that
// line. The frames that unwindd finds in the living process, in a snapshot of it, and in the
// core with which it ends are compared with them: function, file, line, and column where the
// version has them. py-spy and pystack may be asked about the same process. Each difference is of a
// class that says its cause; one of no class is a failure.
//
//	go run ./runtimes/cpython [-run REGEXP] [-versions REGEXP] [-peers] [-quick] [-v] [-keep DIR] [-j N]
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

var (
	only     = flag.String("run", "", "only programs whose `name` matches this expression")
	versions = flag.String("versions", "", "only interpreters whose `name` matches this expression")
	peers    = flag.Bool("peers", false, "ask py-spy and pystack, too")
	quick    = flag.Bool("quick", false, "the interpreter of this machine alone, with some programs, and nothing is fetched")
	verbose  = flag.Bool("v", false, "list every difference, and how long each run took")
	keep     = flag.String("keep", "", "a `folder` that keeps programs, cores and snapshots")
	jobs     = flag.Int("j", 2, "so many programs at once")
	samples  = flag.Int("samples", 0, "instead: so many samples of a living program that logs its calls, of each interpreter")
	values   = flag.Bool("values", false, "instead: compare the text of local variables with repr()")
)

func main() {
	flag.Parse()
	cost.Exit("cpython", run())
}

func run() error {
	dir, remove, err := cost.Folder(*keep, "cpython-")
	if err != nil {
		return err
	}
	defer remove()
	w := &work{dir: dir, tally: map[string]*tally{}, classes: map[string]*class{}}
	if w.unwindd, err = cost.Unwindd("CPYTHON_UNWINDD", dir); err != nil {
		return err
	}
	if w.data, err = filepath.Abs("runtimes/cpython/testdata"); err != nil {
		return err
	}
	if w.interpreters, err = interpreters(*quick); err != nil {
		return err
	}
	if w.interpreters, err = matching(w.interpreters, *versions, func(i *interpreter) string { return i.name }); err != nil {
		return err
	}
	if *peers {
		if err := havePeers(); err != nil {
			return err
		}
	}
	for _, i := range w.interpreters {
		if err := w.prepare(i); err != nil {
			return err
		}
	}
	switch {
	case *samples > 0:
		return w.sampleAll(*samples)
	case *values:
		return w.valuesAll()
	}
	list, err := w.programs()
	if err != nil {
		return err
	}
	w.all(list)
	return w.report()
}

// matching are the elements of a list whose name matches an expression.
func matching[T any](list []T, expression string, name func(T) string) ([]T, error) {
	re, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e T) bool { return !re.MatchString(name(e)) })
	if len(list) == 0 {
		return nil, fmt.Errorf("nothing matches %q", expression)
	}
	return list, nil
}

// quickPrograms are executed by -quick: one of each kind.
var quickPrograms = regexp.MustCompile(`^(coroutines|ctypes_callback|ctypes_crash|deep|destructor_crash|extension|generators|imports|init_shims|recursion_c|signals|subinterpreter|threads|unicode_names)$`)

// programs are the names of the programs that are to be executed.
func (w *work) programs() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(w.data, "programs", "*.py"))
	if err != nil {
		return nil, err
	}
	list := []string{embedded}
	for _, f := range files {
		list = append(list, filepath.Base(f[:len(f)-len(".py")]))
	}
	slices.Sort(list)
	if *quick {
		list = slices.DeleteFunc(list, func(name string) bool { return !quickPrograms.MatchString(name) })
	}
	return matching(list, *only, func(name string) string { return name })
}

// all executes programs by all interpreters, some at once.
func (w *work) all(list []string) {
	type pair struct {
		i       *interpreter
		program string
	}
	next := make(chan pair)
	var wait sync.WaitGroup
	for range *jobs {
		wait.Go(func() {
			for p := range next {
				began := time.Now()
				w.one(p.i, p.program)
				if *verbose {
					fmt.Printf("%6.1fs %s %s\n", time.Since(began).Seconds(), p.i.name, p.program)
				}
			}
		})
	}
	defer wait.Wait()
	defer close(next)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	for _, program := range list {
		for _, i := range w.interpreters {
			select {
			case next <- pair{i, program}:
			case <-interrupted:
				w.leave("interrupted: %s %s, and the programs and interpreters behind it", i.name, program)
				return
			}
		}
	}
}

// work is the state that all programs share.
type work struct {
	dir, data, unwindd string
	interpreters       []*interpreter

	mutex    sync.Mutex
	tally    map[string]*tally // by interpreter and how its process was looked at
	classes  map[string]*class
	leftOut  []string
	failures []string
	unknown  int // differences of no known class
}

// class is a class of differences with an example.
type class struct {
	count   int
	example string
}

func (w *work) fail(format string, args ...any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
}

func (w *work) leave(format string, args ...any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.leftOut = append(w.leftOut, fmt.Sprintf(format, args...))
}

// folder makes the folder of a program that an interpreter executes.
func (w *work) folder(i *interpreter, program string) (string, error) {
	dir := filepath.Join(w.dir, i.name, program)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}
