// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// breaking is the text under a heading Breaking.
type breaking string

var section = regexp.MustCompile(`(?m)^#{2,3} .*$`)

// notes returns the text under Breaking in the section Unreleased of a change log; "" without
// such a heading.
func notes(path string) (breaking, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	text := string(data)
	_, text, is := strings.Cut(text, "\n## Unreleased\n")
	if !is {
		return "", fmt.Errorf("%s has no section: expected `## Unreleased`", path)
	}
	heads := section.FindAllStringIndex(text, -1)
	for i, h := range heads {
		switch head := text[h[0]:h[1]]; {
		case strings.HasPrefix(head, "## "):
			return "", nil
		case head == "### Breaking":
			end := len(text)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			return breaking(strings.TrimSpace(text[h[1]:end])), nil
		}
	}
	return "", nil
}

// have reports whether a name is noted: itself, or the type that it is a member of.
func (b breaking) have(name string) bool {
	for name != "" {
		if strings.Contains(string(b), "`"+name+"`") {
			return true
		}
		i := strings.LastIndexByte(name, '.')
		if i < 0 || strings.Contains(name[i:], "/") {
			return false
		}
		name = name[:i]
	}
	return false
}
