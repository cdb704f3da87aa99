// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// matters matches the names of variables that tools and tests read.
var matters = regexp.MustCompile(`^(CI|HOME|PATH|TMPDIR|TZ|LANG|CC|CXX|BARE|XDG_(CACHE|CONFIG|DATA)_HOME)=|^(UNWINDD|GO|CGO|LC|LD|PYTHON|DEBUGINFOD|RUST)[A-Z]*(_[A-Z0-9_]*)?=`)

// describeMachine returns a text of what decides results beside the checkout: packages, tools, the
// kernel, the processors, and variables of the environment.
func describeMachine() string {
	text := new(strings.Builder)
	for _, c := range [][]string{
		{"dpkg-query", "-W", "-f", "${Package} ${Version} ${Architecture} ${db:Status-Status}\n"},
		{"uname", "-srvm"},
		{"nproc"},
		{"go", "version"},
		{"rustc", "--version"},
		{"python3", "--version"},
		{"python3", "-m", "pip", "freeze"},
		{"id", "-u"},
		{"bash", "-c", "ulimit -a"},
	} {
		out, err := exec.Command(c[0], c[1:]...).Output()
		fmt.Fprintf(text, "%q %v %s\n", c, err, out)
	}
	for _, path := range []string{"core_pattern", "perf_event_paranoid", "yama/ptrace_scope", "randomize_va_space", "unprivileged_userns_clone"} {
		value, _ := os.ReadFile("/proc/sys/kernel/" + path) // not all kernels have each
		fmt.Fprintf(text, "%s %s\n", path, value)
	}
	cpus, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(cpus)) {
		if strings.HasPrefix(line, "model name") || strings.HasPrefix(line, "flags") {
			text.WriteString(line)
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil {
				fmt.Fprintln(text, dir, e.Name(), info.Size(), info.Mode())
			}
		}
	}
	var set []string
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); matters.MatchString(v) && name != logsVariable && name != anewVariable {
			set = append(set, v)
		}
	}
	slices.Sort(set)
	for _, v := range set {
		fmt.Fprintf(text, "%q\n", v)
	}
	return text.String()
}
