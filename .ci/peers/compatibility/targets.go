// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/bzip2"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// target is a file to walk.
type target struct {
	name string // in the tree
	path string
}

// isRecording reports whether it is one of perf.
func (t *target) isRecording() bool { return strings.HasSuffix(t.name, ".data") }

// files are the names of targets in the tree.
var files = regexp.MustCompile(`\.(snapshot|core|dmp|data)(\.gz|\.xz|\.zst|\.lz4|\.bz2)?$`)

// find lists the targets of the tree. What has to be made or unpacked first is put into dir.
func find(top, dir string, filter *regexp.Regexp) ([]target, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	out, err := exec.Command("git", "-C", top, "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, err
	}
	var list []target
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSpace(name)
		if !files.MatchString(name) || !filter.MatchString(name) {
			continue
		}
		t := target{name, filepath.Join(top, name)}
		if packed, is := strings.CutSuffix(filepath.Base(name), ".bz2"); is { // which unwindd does not read
			t.path = filepath.Join(dir, packed)
			if err := unpackBzip2(filepath.Join(top, name), t.path); err != nil {
				return nil, err
			}
		}
		list = append(list, t)
	}
	if toy := (target{"examples/arch-toy/toy.snapshot", filepath.Join(dir, "toy.snapshot")}); filter.MatchString(toy.name) {
		if err := cost.Run(filepath.Join(top, "examples/arch-toy"), "./make.py", toy.path); err != nil {
			return nil, err
		}
		list = append(list, toy)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s has no targets that match %s", top, filter)
	}
	return list, nil
}

func unpackBzip2(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, bzip2.NewReader(in)); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return out.Close()
}
