// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// module is the module's path.
const module = "github.com/unwindd/unwindd"

// docDir is where documents are, beneath the directory that is installed into.
const docDir = "share/doc/unwindd"

// units is where the units of systemd are, in a checkout, and what belongs to them.
const units = "internal/dist/systemd"

// A file is one of a release.
type file struct {
	path    string // slash-separated
	mode    int64
	content []byte
}

// A builder builds a revision.
type builder struct {
	revision
	dir string // for what is built
}

// fixed are the variables that change what the go command builds, and what they are
// here.
var fixed = []string{
	"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0",
	"GOFIPS140=off", "GODEBUG=", "GOTOOLCHAIN=local",
}

// executable builds a command, and returns its path. Paths of this machine and symbols are left
// out, except the tables that Go's own stack traces need. A machine that has the package may be
// one of a fleet, so the queue's server is inside.
func (b *builder) executable(command, system, arch string) (string, error) {
	path := filepath.Join(b.dir, command+"-"+system+"-"+arch)
	const to = " -X " + module + "/internal/version."
	cmd := exec.Command("go", "build", "-trimpath", "-tags=fleet", "-buildvcs=false", "-o", path,
		"-ldflags=-s -w"+to+"version="+b.version+to+"commit="+b.commit+to+"date="+b.time.Format(time.RFC3339), "./cmd/"+command)
	cmd.Env = append(append(os.Environ(), fixed...), "GOOS="+system, "GOARCH="+arch)
	_, err := output(cmd)
	return path, err
}

// shells are where each shell looks for completions.
var shells = []struct{ name, path string }{
	{"bash", "share/bash-completion/completions/unwindd"},
	{"fish", "share/fish/vendor_completions.d/unwindd.fish"},
	{"zsh", "share/zsh/site-functions/_unwindd"},
}

// A fileSet is the files of a pattern, and the directory that they are installed into.
type fileSet struct{ pattern, to string }

// documents are those that are released.
var documents = []fileSet{
	{"LICENSE", docDir}, {"README.md", docDir}, {"CHANGELOG.md", docDir}, {"CONTRIBUTING.md", docDir},
	{"docs/*.md", docDir + "/docs"}, {"docs/*.json", docDir + "/docs"},
}

// common makes what is the same for all architectures. unwindd itself, built for this
// machine, writes manual pages and completions.
func (b *builder) common() ([]file, error) {
	self, err := b.executable("unwindd", runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, shell := range shells {
		text, err := output(exec.Command(self, "completion", shell.name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{shell.path, 0o644, []byte(text + "\n")})
	}
	pages := filepath.Join(b.dir, "man")
	if err := os.Mkdir(pages, 0o700); err != nil {
		return nil, err
	}
	man := exec.Command(self, "man", pages)
	man.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(b.time.Unix(), 10))
	if _, err := output(man); err != nil {
		return nil, err
	}
	for _, set := range append([]fileSet{
		{filepath.Join(pages, "*.1"), "share/man/man1"},
		{units + "/unwindd.*", "lib/systemd/system"}, {units + "/serve.toml", "etc/unwindd"},
	}, documents...) {
		if files, err = addFiles(files, set.pattern, set.to); err != nil {
			return nil, err
		}
	}
	linkOutside(files, b.commit)
	return files, nil
}

// addFiles adds the files of a pattern, beneath a directory.
func addFiles(files []file, pattern, to string) ([]file, error) {
	paths, err := filepath.Glob(pattern)
	if err == nil && len(paths) == 0 {
		err = &os.PathError{Op: "find", Path: pattern, Err: os.ErrNotExist}
	}
	for _, path := range paths {
		content, readErr := os.ReadFile(path)
		if readErr != nil {
			return nil, readErr
		}
		files = append(files, file{to + "/" + filepath.Base(path), 0o644, content})
	}
	return files, err
}

// under puts files beneath a directory.
func under(dir string, files []file) []file {
	list := make([]file, len(files))
	for i, f := range files {
		list[i] = file{strings.TrimSuffix(dir, "/") + "/" + f.path, f.mode, f.content}
	}
	return list
}
