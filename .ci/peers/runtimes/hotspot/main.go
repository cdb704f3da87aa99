// SPDX-License-Identifier: Apache-2.0

// Command hotspot compares the frames of Java in unwindd's stacks with Java's own traces of the same
// processes: jstack's, the trace of a crash, and jhsdb's of the same core. It prints a table, a process in a
// line, and fails where frames differ.
//
//	go run ./runtimes/hotspot -unwindd ./unwindd
//
// Machines of Java are fetched by fetch.sh into ~/.cache/unwindd-peers/hotspot. Debian 12 with the packages
// default-jdk-headless and gcc is needed, and for Java 8 root.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// machine is a machine of Java.
type machine struct {
	version string
	home    string
	root    string // of its files; "" for /
	jhsdb   string // "" where it has none
}

// mode is a way in which methods are executed.
type mode struct{ name, option, rounds string }

var modes = []mode{
	{"interpreted", "-Xint", "300"},
	{"C1", "-XX:TieredStopAtLevel=1", "20001"},
	{"C2", "-XX:-TieredCompilation", "40001"},
	{"mixed", "-Xmixed", "60001"},
}

// system is where Debian has Java 17.
const system = "/usr/lib/jvm/java-17-openjdk-amd64"

func main() {
	unwindd := flag.String("unwindd", "unwindd", "the command to compare")
	only := flag.String("only", "", "versions and modes with this text alone: 17 C2")
	keep := flag.String("keep", "", "keep cores and traces in this folder")
	verbose := flag.Bool("v", false, "print frames that differ")
	flag.Parse()
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{Cur: 1 << 40, Max: 1 << 40})
	if err := run(*unwindd, *only, *keep, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "hotspot:", err)
		os.Exit(1)
	}
}

// run compares all machines in all modes.
func run(unwindd, only, keep string, verbose bool) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	cache = filepath.Join(cache, "unwindd-peers", "hotspot")
	if err := command(10*time.Minute, "", "runtimes/hotspot/fetch.sh", cache); err != nil {
		return err
	}
	dir := keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "hotspot"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	if err := build(dir); err != nil {
		return err
	}
	fmt.Printf("%-4s %-12s %-7s %8s %7s %6s %6s %6s %7s\n", "Java", "mode", "beside", "threads", "frames", "equal", "differ", "names", "states")
	var failed int
	for _, m := range machines(cache) {
		for _, how := range modes {
			if !strings.Contains(m.version+" "+how.name, only) {
				continue
			}
			c := &comparison{machine: m, mode: how, unwindd: unwindd, classes: dir, isVerbose: verbose}
			if c.dir, err = os.MkdirTemp(cmp.Or(m.tmp(), dir), "run"); err != nil {
				return err
			}
			n, err := c.all()
			if err != nil {
				fmt.Printf("%-4s %-12s %v\n", m.version, how.name, err)
				n++
			}
			failed += n
			if keep == "" {
				_ = os.RemoveAll(c.dir)
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d frames, names or states differ", failed)
	}
	return nil
}

func machines(cache string) []machine {
	list := []machine{{version: "8", home: "/usr/lib/jvm/java-8-openjdk-amd64", root: filepath.Join(cache, "8")}}
	for _, v := range []string{"11", "17", "21", "25"} {
		m := machine{version: v, home: filepath.Join(cache, v)}
		if v == "17" {
			m.home, m.jhsdb = system, filepath.Join(system, "bin", "jhsdb")
		}
		list = append(list, m)
	}
	return list
}

// tmp is the folder of temporary files in the machine's root; "" for any.
func (m *machine) tmp() string {
	if m.root == "" {
		return ""
	}
	return filepath.Join(m.root, "tmp")
}

// build compiles the program and its library.
func build(dir string) error {
	source := "runtimes/hotspot/testdata"
	return errors.Join(
		command(5*time.Minute, "", "javac", "-nowarn", "-g", "--release", "8", "-d", dir, filepath.Join(source, "Mix.java")),
		command(time.Minute, "", "gcc", "-g", "-O1", "-shared", "-fPIC", "-I", system+"/include", "-I", system+"/include/linux",
			"-o", filepath.Join(dir, "libmix.so"), filepath.Join(source, "mix.c")),
	)
}

// command runs a command, and returns what it wrote where it fails.
func command(timeout time.Duration, dir, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// inRoot returns the command that runs a program among the machine's files.
func (m *machine) inRoot(dir, program string, args ...string) *exec.Cmd {
	if m.root == "" {
		c := exec.Command(program, args...)
		c.Dir = dir
		return c
	}
	script := `mount --bind /proc "$1/proc" && mount --bind /dev "$1/dev" && exec chroot "$@"`
	return exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, "sh", m.root, program}, args...)...)
}

// inside is a path as the machine's programs see it.
func (m *machine) inside(path string) string { return strings.TrimPrefix(path, m.root) }

// end ends a process by a signal, and waits for it.
func end(c *exec.Cmd, s syscall.Signal) {
	_ = c.Process.Signal(s)
	_ = c.Wait()
}
