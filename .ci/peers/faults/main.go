// SPDX-License-Identifier: Apache-2.0

// Command faults runs unwindd while the system fails it: the disk is full, files are cut
// while they are read, plugins die at each of their calls, limits are low, the kernel is old,
// and what every system has is missing. A run may print what it prints otherwise, or less and
// say so, or fail in a clear word with the right exit status. A frame that is not in the whole
// answer is wrong, and so is a run that hangs or panics, or leaves a process or a file.
//
//	go run ./faults [-small] [-only TEXT] [-cuts N] [-seed N] [-v]
//
// It mounts in a namespace of its own; who is not root is one in a user namespace.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/smalldisk"
)

var (
	isSmall   = flag.Bool("small", false, "a sample, which takes some seconds")
	only      = flag.String("only", "", "only faults that have `TEXT` in their names")
	cuts      = flag.Int("cuts", 150, "cut each file `N` times")
	seed      = flag.Uint64("seed", 0, "seed of what is random; 0: another one each time")
	keep      = flag.String("keep", "", "a `folder` that keeps answers that are wrong")
	isVerbose = flag.Bool("v", false, "print every run")
)

// apart is the variable by which this program is told that it has a mount namespace of its
// own, and which folder is for it.
const apart = "FAULTS_APART"

func main() {
	if name, ok := strings.CutPrefix(filepath.Base(os.Args[0]), pluginPrefix); ok {
		servePlugin(name)
		return
	}
	if text := os.Getenv(enterVariable); text != "" {
		fmt.Fprintln(os.Stderr, "faults:", enter(text))
		os.Exit(notEntered)
	}
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	cost.Exit("faults", run())
}

func run() error {
	if dir := os.Getenv(apart); dir != "" {
		return runApart(dir)
	}
	dir, err := os.MkdirTemp("/var/tmp", "f") // short: it begins the paths of sockets, which are bounded
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unwindd := os.Getenv("FAULTS_UNWINDD")
	if unwindd == "" {
		if _, err := cost.Build(dir); err != nil {
			return err
		}
	} else if err := copyFile(unwindd, filepath.Join(dir, "unwindd")); err != nil {
		return err
	}
	if err := copyMaterial(dir); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := copyFile(self, filepath.Join(dir, "faults")); err != nil { // which plugins are links to
		return err
	}
	return smalldisk.Apart(append([]string{"-seed", fmt.Sprint(*seed)}, os.Args[1:]...), apart+"="+dir)
}

func runApart(dir string) error {
	var kept *os.Root
	if *keep != "" {
		var err error
		if kept, err = os.OpenRoot(*keep); err != nil {
			return err
		}
		defer kept.Close()
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := ownTemporary(dir); err != nil {
		return err
	}
	// Processes that lose their parent become children of this one, and are noticed.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	fmt.Printf("seed %d\n", *seed)
	// The cache of plugins is keyed by their bytes, and the dying ones have the same
	// bytes.
	_ = errors.Join(os.Unsetenv("HOME"), os.Unsetenv("XDG_CACHE_HOME"))
	b, err := newBench(dir)
	if err != nil {
		return err
	}
	defer b.close()
	b.kept = kept
	var errs []error
	for _, part := range []func() error{b.faults, b.cutFiles, b.deaths} {
		errs = append(errs, part())
	}
	b.printTable()
	if n := b.total.counts[wrong]; n > 0 {
		errs = append(errs, fmt.Errorf("%d runs were not as they should be", n))
	}
	return errors.Join(errs...)
}

// ownTemporary has empty folders in the place of those that every program writes to, so that
// whatever is left in one is of a run. The folder of this command stays what it is.
func ownTemporary(dir string) error {
	own, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer own.Close()
	for _, path := range temporary {
		if err := unix.Mount("none", path, "tmpfs", 0, "mode=1777"); err != nil {
			return fmt.Errorf("a %s of its own: %w", path, err)
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // other users read it, too
		return err
	}
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", own.Fd()), dir, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("the folder of runs: %w", err)
	}
	return nil
}

// isChosen reports whether a fault is to be tried.
func isChosen(name string) bool { return strings.Contains(name, *only) }
