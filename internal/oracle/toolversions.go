// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// oldest has the oldest usable versions of tools, by name.
var oldest = map[string]struct {
	major, minor int
	because      string
}{
	"rustc": {1, 85, "older ones lack black_box, and name types otherwise in debug information"},
}

var (
	versionPattern = regexp.MustCompile(`(\d+)\.(\d+)`)
	toolVersions   sync.Map // from a path to the output of --version
)

// unfit returns why a tool is too old for tests; "" if it is not.
func unfit(name, path string) string {
	least, ok := oldest[name]
	if !ok {
		return ""
	}
	once, _ := toolVersions.LoadOrStore(path, sync.OnceValue(func() string {
		out, _ := exec.Command(path, "--version").Output()
		return string(out)
	}))
	text := once.(func() string)()
	found := versionPattern.FindStringSubmatch(text)
	if found == nil {
		return fmt.Sprintf("%s %d.%d or later is needed; the one that is installed does not tell its version", name, least.major, least.minor)
	}
	major, _ := strconv.Atoi(found[1])
	minor, _ := strconv.Atoi(found[2])
	if major > least.major || major == least.major && minor >= least.minor {
		return ""
	}
	return fmt.Sprintf("%s %d.%d or later is needed (%s); this is %s", name, least.major, least.minor, least.because, found[0])
}

// libcxx records by name whether a compiler finds libc++.
var libcxx sync.Map

// command requires a tool for a test: it must be installed, new enough, and find the C++
// library that the arguments name.
func command(t testing.TB, name string, args []string) {
	t.Helper()
	path := Tool(t, name)
	if !slices.Contains(args, "-stdlib=libc++") {
		return
	}
	once, _ := libcxx.LoadOrStore(path, sync.OnceValue(func() bool {
		cmd := exec.Command(path, "-stdlib=libc++", "-std=c++17", "-fsyntax-only", "-x", "c++", "-")
		cmd.Stdin = strings.NewReader("#include <any>\n")
		return cmd.Run() == nil
	}))
	if !once.(func() bool)() {
		Missing(t, "%s does not find the headers of libc++ (Debian: libc++-dev, libc++abi-dev)", name)
	}
}
