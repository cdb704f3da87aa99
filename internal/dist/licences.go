// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// linkedModule is a third-party module in the executable.
type linkedModule struct {
	path, version string
	sum           string            // of its files, as in go.sum; "": it is Go's own library
	identifiers   []string          // of SPDX, in order
	texts         map[string]string // by the name of the file within the module
}

// licences are the licences that may be linked, with words that identify each and, where it
// is another with an added condition, words that it lacks.
var licences = []struct {
	identifier string
	has        []string
	not        string
}{
	{"Apache-2.0", []string{"apache license version 2.0, january 2004"}, ""},
	{"BSD-2-Clause", []string{"redistribution and use in source and binary forms", "must retain the above copyright notice"}, "neither the name"},
	{"BSD-3-Clause", []string{"redistribution and use in source and binary forms", "must retain the above copyright notice", "neither the name"}, ""},
	{"ISC", []string{"permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted"}, ""},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "without restriction"}, ""},
	{"MPL-2.0", []string{"mozilla public license", "version 2.0", "covered software"}, ""},
}

// identify returns the licences that a text has; none: it is not known.
func identify(text string) []string {
	text = strings.ToLower(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("*#/", r) }), " "))
	var found []string
	for _, l := range licences {
		if !slices.ContainsFunc(l.has, func(words string) bool { return !strings.Contains(text, words) }) && (l.not == "" || !strings.Contains(text, l.not)) {
			found = append(found, l.identifier)
		}
	}
	return found
}

// licenceFile matches the files that grant licences, and notices that binaries have to keep.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense)(\.(md|txt|rst))?([-.].*)?$`)

// needsNone matches the files among them that need not be licences.
var needsNone = regexp.MustCompile(`(?i)^(notice|patents)`)

// linkedModules lists the modules in an executable with their licences, Go's own library
// among them. A module without a known licence is an error.
func linkedModules(exe, system, arch string) ([]*linkedModule, error) {
	info, err := buildinfo.ReadFile(exe)
	if err != nil {
		return nil, err
	}
	list := exec.Command("go", "list", tags(system), "-deps", "-json=ImportPath,Dir,Standard,Module", "./cmd/unwindd")
	list.Env = append(append(os.Environ(), fixed...), "GOOS="+system, "GOARCH="+arch)
	out, err := output(list)
	if err != nil {
		return nil, err
	}
	modules := map[string]*linkedModule{}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		var p struct {
			Dir      string
			Standard bool
			Module   *struct{ Path, Version, Dir string }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Standard || p.Module == nil || p.Module.Path == module {
			continue
		}
		m := modules[p.Module.Path]
		if m == nil {
			m = &linkedModule{path: p.Module.Path, version: p.Module.Version, texts: map[string]string{}}
			modules[m.path] = m
		}
		if err := m.gather(p.Dir, p.Module.Dir); err != nil {
			return nil, err
		}
	}
	for _, dep := range info.Deps {
		if m := modules[dep.Path]; m == nil || m.version != dep.Version {
			return nil, fmt.Errorf("%s %s is linked, and go list does not know it", dep.Path, dep.Version)
		}
		modules[dep.Path].sum = dep.Sum
	}
	root, err := output(exec.Command("go", "env", "GOROOT"))
	if err != nil {
		return nil, err
	}
	std := &linkedModule{path: "std", version: info.GoVersion, texts: map[string]string{}}
	modules[std.path] = std
	if err := std.gather(root, root); err != nil {
		return nil, err
	}
	var all []*linkedModule
	for _, path := range sortedKeys(modules) {
		all = append(all, modules[path])
		if err := modules[path].check(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// gather reads the licences of a package: in its directory and in the ones above, up to the
// module's.
func (m *linkedModule) gather(dir, top string) error {
	for ; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() || !licenceFile.MatchString(e.Name()) {
				continue
			}
			path := filepath.Join(dir, e.Name())
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(top, path)
			if err != nil {
				return err
			}
			m.texts[filepath.ToSlash(name)] = string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
		}
		if dir == top || len(dir) <= len(top) {
			return nil
		}
	}
}

// check identifies the licences.
func (m *linkedModule) check() error {
	known := map[string]bool{}
	for _, name := range sortedKeys(m.texts) {
		found := identify(m.texts[name])
		if len(found) == 0 && !needsNone.MatchString(filepath.Base(name)) {
			return fmt.Errorf("%s %s: %s is no licence that is known here", m.path, m.version, name)
		}
		for _, l := range found {
			known[l] = true
		}
	}
	if len(known) == 0 {
		return fmt.Errorf("%s %s has no licence", m.path, m.version)
	}
	m.identifiers = sortedKeys(known)
	return nil
}

// source is the place to get the sources of a module, which the MPL requires.
func (m *linkedModule) source() string {
	if m.path == "std" {
		return "https://go.dev/dl/" + m.version + ".src.tar.gz"
	}
	var b strings.Builder
	for _, r := range m.path + "/@v/" + m.version {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return "https://proxy.golang.org/" + b.String() + ".zip"
}

// summary names the licences of modules, each on a line.
func summary(list []*linkedModule) string {
	var b strings.Builder
	for _, m := range list {
		fmt.Fprintf(&b, "%s %s: %s\n", m.path, m.version, strings.Join(m.identifiers, ", "))
	}
	return b.String()
}

// licenceTexts is a document with the licences of all linked modules.
func licenceTexts(list []*linkedModule) []byte {
	var b bytes.Buffer
	b.WriteString("unwindd is under the Apache License 2.0, see LICENSE. The executable has parts of\nthe modules below, under licences of their own.\n\n")
	b.WriteString(summary(list))
	for _, m := range list {
		fmt.Fprintf(&b, "\n%s\n%s %s: %s\nSources: %s\n", strings.Repeat("=", 80), m.path, m.version, strings.Join(m.identifiers, ", "), m.source())
		for _, name := range sortedKeys(m.texts) {
			fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("-", 80), name, strings.TrimRight(m.texts[name], "\n"))
		}
	}
	return b.Bytes()
}
