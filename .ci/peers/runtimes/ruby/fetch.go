// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// rubyVersion is a version of Ruby, and how it is run.
type rubyVersion struct {
	version  string
	suite    string
	isUbuntu bool
	args     []string
}

// rubies are the versions that are compared.
var rubies = []rubyVersion{
	{version: "2.7", suite: "bullseye"},
	{version: "3.0", suite: "jammy", isUbuntu: true},
	{version: "3.1", suite: "bookworm"},
	{version: "3.1", suite: "bookworm", args: []string{"--yjit", "--yjit-call-threshold=2"}},
	{version: "3.2", suite: "noble", isUbuntu: true},
	{version: "3.3", suite: "trixie"},
	{version: "3.3", suite: "trixie", args: []string{"--rjit"}},
	{version: "3.4", suite: "experimental"},
}

// name is the version, and what it is run with.
func (v *rubyVersion) name() string { return strings.Join(append([]string{v.version}, v.args...), " ") }

// fetchScript has apt-get download the packages of a suite into the folder $1, by lists of its own,
// and unpacks them: $2 is the sources, and the rest names the packages.
const fetchScript = `set -eu
cd "$1"
root=$PWD
mkdir -p lists/partial cache/archives/partial deb
: >status
printf '%s\n' "$2" >sources
own() {
	apt-get -q -o Dir::State::lists="$root/lists" -o Dir::Cache="$root/cache" -o Dir::State::status="$root/status" \
		-o Dir::Etc::sourcelist="$root/sources" -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User= -o Acquire::Languages=none "$@"
}
own update
shift 2
(cd deb && own download "$@")
for f in deb/*.deb; do dpkg-deb -x "$f" .; done
rm -r lists cache deb status sources
`

// fetch returns the folder that a version is unpacked in. It is in the user's cache; the first call
// has apt-get download it.
func (v *rubyVersion) fetch() (string, error) {
	root := *unpacked
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		root = filepath.Join(cache, "unwindd-peers")
	}
	dir := filepath.Join(root, "ruby-"+v.version)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	sources, err := v.sources()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	packages := []string{"ruby" + v.version, "libruby" + v.version, "libc6", "libgmp10", "libcrypt1", "zlib1g", "libgcc-s1"}
	if out, err := exec.Command("bash", append([]string{"-c", fetchScript, "bash", temp, sources}, packages...)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("its packages: %w\n%s", err, out)
	}
	return dir, os.Rename(temp, dir)
}

// sources are the lines of apt's sources. What is unpacked from them is run as a peer, and is no
// part of anything.
func (v *rubyVersion) sources() (string, error) {
	if v.isUbuntu {
		site := os.Getenv("RUBY_UBUNTU")
		if site == "" {
			return "", errors.New("RUBY_UBUNTU names no mirror of Ubuntu")
		}
		return fmt.Sprintf("deb [trusted=yes] %s %s main universe", site, v.suite), nil
	}
	out, err := exec.Command("apt-get", "indextargets", "--format", "$(SITE)", "Component: main").Output()
	site, _, _ := strings.Cut(string(out), "\n")
	if err != nil || site == "" {
		return "", fmt.Errorf("apt-get has no source of Debian: %w", err)
	}
	lines := fmt.Sprintf("deb [trusted=yes] %s %s main", site, v.suite)
	if v.suite == "experimental" {
		lines += fmt.Sprintf("\ndeb [trusted=yes] %s sid main", site)
	}
	return lines, nil
}

// command is a command of a version that runs a program.
func (v *rubyVersion) command(folder, program string) ([]string, error) {
	lib := filepath.Join(folder, "usr/lib/x86_64-linux-gnu")
	loader := ""
	for _, name := range []string{"usr/lib64/ld-linux-x86-64.so.2", "lib64/ld-linux-x86-64.so.2"} {
		if p, err := filepath.EvalSymlinks(filepath.Join(folder, name)); err == nil && strings.HasPrefix(p, folder) {
			loader = p
		}
	}
	if loader == "" {
		for _, pattern := range []string{"usr/lib/x86_64-linux-gnu/ld-*.so*", "lib/x86_64-linux-gnu/ld-*.so*"} {
			if found, _ := filepath.Glob(filepath.Join(folder, pattern)); len(found) > 0 {
				loader = found[0]
			}
		}
	}
	if loader == "" {
		return nil, errors.New("it has no dynamic loader")
	}
	argv := []string{loader, "--library-path", lib + ":" + filepath.Join(folder, "lib/x86_64-linux-gnu"), filepath.Join(folder, "usr/bin/ruby"+v.version), "--disable-gems"}
	argv = append(argv, v.args...)
	return append(argv, "-I", filepath.Join(folder, "usr/lib/ruby", v.version+".0"), "-I", filepath.Join(lib, "ruby", v.version+".0"), program), nil
}
