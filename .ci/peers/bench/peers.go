// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/breakpad"
)

// peers are the commands that are asked, and Debian's packages that have them.
var peers = []struct{ command, debian string }{
	{"addr2line", "binutils"}, {"eu-addr2line", "elfutils"}, {"eu-stack", "elfutils"}, {"gdb", "gdb"}, {"lldb-22", "lldb-22"},
	{"llvm-dwarfdump-22", "llvm-22"}, {"llvm-symbolizer-22", "llvm-22"}, {"perf", "linux-perf"}, {"readelf", "binutils"},
}

// isHere says that a command is in PATH.
func isHere(command string) bool {
	_, err := exec.LookPath(command)
	return err == nil
}

// install installs the packages of commands that are not here, where that is allowed and
// the run is not short. It returns the ones that are still missing.
func (b *bench) install() {
	var packages []string
	for _, p := range peers {
		if !isHere(p.command) {
			packages = append(packages, p.debian)
		}
	}
	if len(packages) > 0 && !b.short {
		argv := append([]string{"apt-get", "install", "-q", "-y", "--no-install-recommends"}, packages...)
		if os.Geteuid() != 0 {
			argv = append([]string{"sudo", "-n"}, argv...)
		}
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", cmd, err)
		}
	}
	for _, p := range peers {
		if !isHere(p.command) {
			b.absent(p.command, "Debian's package "+p.debian+" is not installed")
		}
	}
}

// versionOf finds the version in what a command prints first.
var versionOf = regexp.MustCompile(`\d+\.\d[\w.+~-]*`)

// writeMachine says where the figures are from.
func (b *bench) writeMachine(w io.Writer) {
	model := "an unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "model name\t: "); ok {
			model, _, _ = strings.Cut(rest, "\n")
		}
	}
	fmt.Fprintf(w, "Measured with %d processors, %s, and %s. The peers: ", runtime.NumCPU(), model, runtime.Version())
	var list []string
	for _, p := range peers {
		out, err := exec.Command(p.command, "--version").Output()
		if err == nil {
			list = append(list, p.command+" "+versionOf.FindString(string(out)))
		}
	}
	list = append(list, b.versions...)
	if breakpad.HasTools() {
		list = append(list, "minidump_stackwalk of npm's minidump "+breakpad.Version)
	}
	fmt.Fprintf(w, "%s.\n", strings.Join(list, ", "))
	for _, m := range b.missing {
		fmt.Fprintf(w, "\nNot at hand: %s.\n", m)
	}
	fmt.Fprintln(w)
}
