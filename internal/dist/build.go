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

// docDir is the directory of documents, beneath the directory of installation.
const docDir = "share/doc/unwindd"

// units is the directory of the systemd units and their files, in a checkout.
const units = "internal/dist/systemd"

// file is a file of a release.
type file struct {
	path    string // slash-separated
	mode    int64
	content []byte
}

// builder builds a revision.
type builder struct {
	revision
	dir string // for built files
}

// fixed are the variables that change the output of the go command, with their values here.
var fixed = []string{
	"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0",
	"GOFIPS140=off", "GODEBUG=", "GOTOOLCHAIN=local",
}

// tags returns the flag of tags of a build. A machine that has the package may be one of a fleet,
// so the queue's server is inside. Workers of a fleet run on Linux alone.
func tags(system string) string {
	if system == "linux" {
		return "-tags=fleet"
	}
	return "-tags="
}

// executable builds a command, and returns its path. Paths of this machine and symbols are
// left out, except the tables that Go's own stack traces need.
func (b *builder) executable(command, system, arch string) (string, error) {
	path := filepath.Join(b.dir, command+"-"+system+"-"+arch)
	const flag = " -X " + module + "/internal/version."
	cmd := exec.Command("go", "build", "-trimpath", tags(system), "-buildvcs=false", "-o", path,
		"-ldflags=-s -w"+flag+"version="+b.version+flag+"commit="+b.commit+flag+"date="+b.time.Format(time.RFC3339), "./cmd/"+command)
	cmd.Env = append(append(os.Environ(), fixed...), "GOOS="+system, "GOARCH="+arch)
	_, err := output(cmd)
	return path, err
}

// shells are the paths where each shell looks for completions.
var shells = []struct{ name, path string }{
	{"bash", "share/bash-completion/completions/unwindd"},
	{"fish", "share/fish/vendor_completions.d/unwindd.fish"},
	{"zsh", "share/zsh/site-functions/_unwindd"},
}

// fileSet is the files that match a pattern, and the directory of their installation.
type fileSet struct{ pattern, dir string }

// documents are the released documents.
var documents = []fileSet{
	{"LICENSE", docDir}, {"README.md", docDir}, {"CHANGELOG.md", docDir}, {"CONTRIBUTING.md", docDir},
	{"docs/*.md", docDir + "/docs"}, {"docs/*.json", docDir + "/docs"}, {"docs/pictures/*.png", docDir + "/docs/pictures"},
}

// common makes the files that are the same for all architectures. unwindd itself, built for
// this machine, writes manual pages and completions.
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
		{units + "/*.service", "lib/systemd/system"}, {units + "/*.socket", "lib/systemd/system"}, {units + "/*.toml", "etc/unwindd"},
	}, documents...) {
		if files, err = addFiles(files, set.pattern, set.dir); err != nil {
			return nil, err
		}
	}
	linkOutside(files, b.commit)
	return files, nil
}

// addFiles adds the files that match a pattern, beneath a directory.
func addFiles(files []file, pattern, dir string) ([]file, error) {
	paths, err := filepath.Glob(pattern)
	if err == nil && len(paths) == 0 {
		err = &os.PathError{Op: "find", Path: pattern, Err: os.ErrNotExist}
	}
	for _, path := range paths {
		content, readErr := os.ReadFile(path)
		if readErr != nil {
			return nil, readErr
		}
		files = append(files, file{dir + "/" + filepath.Base(path), 0o644, content})
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
