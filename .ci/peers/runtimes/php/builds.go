// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// build is an executable of PHP.
type build struct {
	name    string
	version string // "8.2"
	command []string
	env     []string
	opcache string // the module; "": it is built in
}

// fetchDebian unpacks packages of a suite of Debian into a folder: the folder, the suite, the packages.
const fetchDebian = `set -eu
cd "$1"
suite=$2
shift 2
mkdir -p lists/partial cache/archives/partial deb
: > status
echo "deb [trusted=yes] http://deb.debian.org/debian $suite main" > sources.list
cd deb
own() {
	apt-get -q -o APT::Sandbox::User= -o "Dir::State::lists=$OLDPWD/lists" -o "Dir::Cache=$OLDPWD/cache" -o "Dir::State::status=$OLDPWD/status" \
		-o "Dir::Etc::sourcelist=$OLDPWD/sources.list" -o Dir::Etc::sourceparts=- -o Acquire::Languages=none "$@"
}
own update
own download "$@"
cd ..
for f in deb/*.deb; do dpkg-deb -x "$f" .; done
rm -r lists cache deb status sources.list
`

// fetchNPM unpacks a package of npm into a folder.
const fetchNPM = `set -eu
cd "$1"
npm pack --silent "$2"
tar -xzf ./*.tgz --no-same-owner
rm ./*.tgz
`

// debian are the suites, with what their PHP needs beside it.
var debian = []struct {
	suite, version string
	packages       []string
}{
	{"bullseye", "7.4", []string{"libc6", "libssl1.1", "libargon2-1", "libpcre2-8-0", "libsodium23", "libxml2", "zlib1g", "libicu67", "liblzma5", "libgcc-s1", "libstdc++6"}},
	{"bookworm", "8.2", []string{"libc6", "libssl3", "libargon2-1", "libpcre2-8-0", "libsodium23", "libxml2", "zlib1g", "libicu72", "liblzma5", "libgcc-s1", "libstdc++6"}},
	{"trixie", "8.4", []string{"libc6", "libssl3t64", "libargon2-1", "libpcre2-8-0", "libsodium23", "libxml2", "zlib1g", "libicu76", "liblzma5", "libgcc-s1", "libstdc++6", "libcapstone5"}},
}

// npm are packages with executables for services without servers.
var npm = []struct{ name, version string }{
	{"@libphp/amazon-linux-2-v74", "7.4"},
	{"@libphp/amazon-linux-2-v82", "8.2"},
	{"@libphp/amazon-linux-2-v83", "8.3"},
	{"@libphp/amazon-linux-2023-v84", "8.4"},
	{"@libphp/almalinux-9-v85", "8.5"},
}

// builds returns the executables, which are fetched when they are not there yet.
func builds() (list []build, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	root := filepath.Join(cache, "unwindd-peers", "php")
	for _, d := range debian {
		packages := append([]string{"php" + d.version + "-cli", "php" + d.version + "-opcache", "php" + d.version + "-common"}, d.packages...)
		dir, err := fetch(filepath.Join(root, d.suite), fetchDebian, append([]string{d.suite}, packages...)...)
		if err != nil {
			return nil, err
		}
		php := filepath.Join(dir, "usr/bin/php"+d.version)
		loader, _ := filepath.Glob(filepath.Join(dir, "lib*/x86_64-linux-gnu/ld-linux-x86-64.so.2"))
		if more, _ := filepath.Glob(filepath.Join(dir, "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2")); len(loader) == 0 {
			loader = more
		}
		if len(loader) == 0 {
			return nil, fmt.Errorf("%s has no loader", dir)
		}
		libraries := filepath.Join(dir, "lib/x86_64-linux-gnu") + ":" + filepath.Join(dir, "usr/lib/x86_64-linux-gnu")
		opcache, _ := filepath.Glob(filepath.Join(dir, "usr/lib/php/20*/opcache.so"))
		b := build{name: "Debian " + d.suite, version: d.version, command: []string{loader[0], "--library-path", libraries, php, "-n"}}
		if len(opcache) > 0 {
			b.opcache = opcache[0]
		}
		list = append(list, b)
	}
	for _, p := range npm {
		dir, err := fetch(filepath.Join(root, strings.ReplaceAll(p.name, "/", "+")), fetchNPM, p.name)
		if err != nil {
			return nil, err
		}
		native := filepath.Join(dir, "package/native")
		b := build{
			name: strings.TrimPrefix(p.name, "@libphp/"), version: p.version, command: []string{filepath.Join(native, "php/php"), "-n"},
			env: []string{"LD_LIBRARY_PATH=" + filepath.Join(native, "lib")},
		}
		if module := filepath.Join(native, "php/modules/opcache.so"); exists(module) {
			b.opcache = module
		}
		list = append(list, b)
	}
	return list, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// fetch runs a script that fills a folder, unless the folder is there.
func fetch(dir, script string, args ...string) (string, error) {
	if exists(dir) {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if out, err := exec.Command("bash", append([]string{"-c", script, "bash", temp}, args...)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", args, err, out)
	}
	return dir, os.Rename(temp, dir)
}
