// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	// fences are blocks of code, in which nothing is a link or a heading.
	fences   = regexp.MustCompile("(?ms)^```.*?^```[ \t]*$")
	links    = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()\s]*\))?[^()\s]*)\)`)
	headings = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *#*$`)
	merges   = regexp.MustCompile(`(?m)^(<<<<<<<|>>>>>>>) .*`) // what git leaves where two changes meet
	hosts    = regexp.MustCompile(`^([a-z0-9-]+\.)+[a-z]{2,}$`)
)

// anchorsOf are the anchors that GitHub gives the headings of a document.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, m := range headings.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		title := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		var anchor strings.Builder
		for _, r := range strings.ToLower(title) {
			switch {
			case r == ' ':
				anchor.WriteByte('-')
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				anchor.WriteRune(r)
			}
		}
		name := anchor.String()
		for n := 1; anchors[name]; n++ {
			name = fmt.Sprintf("%s-%d", anchor.String(), n)
		}
		anchors[name] = true
	}
	return anchors
}

// problemOfLink is why a link of a document leads nowhere; "": it leads somewhere.
func problemOfLink(document, link string) string {
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return err.Error()
	case u.Scheme == "http", u.Scheme == "https":
		if !hosts.MatchString(u.Hostname()) {
			return "it has no host"
		}
		return ""
	case u.Scheme != "":
		return "it is no file, and of no scheme that a document links to"
	}
	to := document
	if u.Path != "" {
		to = filepath.Join(filepath.Dir(document), filepath.FromSlash(u.Path))
	}
	info, err := os.Stat(to)
	switch {
	case err != nil:
		return err.Error()
	case u.Fragment == "":
		return ""
	case info.IsDir() || filepath.Ext(to) != ".md":
		return "only documents have anchors"
	}
	text, err := os.ReadFile(to)
	if err != nil {
		return err.Error()
	}
	if !anchorsOf(string(text))[u.Fragment] {
		return "there is no such heading"
	}
	return ""
}

// TestLinks follows every link of every document: files and headings have to be there,
// addresses of hosts are looked at and not asked. Nor may a document be half merged.
func TestLinks(t *testing.T) {
	count := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if mark := merges.Find(text); mark != nil {
			t.Errorf("%s: a merge was not finished: %s", path, mark)
		}
		for _, m := range links.FindAllStringSubmatch(fences.ReplaceAllString(string(text), ""), -1) {
			count++
			if problem := problemOfLink(path, m[1]); problem != "" {
				t.Errorf("%s links to %s: %s", path, m[1], problem)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count < 100 {
		t.Errorf("%d links, expected 100 or more", count)
	}
}

func TestLinksThatLeadNowhere(t *testing.T) {
	document := filepath.Join(t.TempDir(), "a.md")
	if err := os.WriteFile(document, []byte("# One `two`, three\n\n```\n# no heading\n```\n\n## Same\n\n## Same\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"a.md", "#one-two-three", "a.md#same-1", "https://example.org/x", "."} {
		if problem := problemOfLink(document, link); problem != "" {
			t.Errorf("%s: %s", link, problem)
		}
	}
	for _, link := range []string{"b.md", "#no-heading", "a.md#same-2", "https:///x", "ftp://example.org", ".#one", "http://a b"} {
		if problemOfLink(document, link) == "" {
			t.Errorf("%s is taken for a link that leads somewhere", link)
		}
	}
}
