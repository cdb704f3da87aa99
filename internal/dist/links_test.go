// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinksOfReleasedDocuments follows each link to a file: it has to be released, or be
// that of the checkout at the commit that is released.
func TestLinksOfReleasedDocuments(t *testing.T) {
	t.Chdir("../..")
	var files []file
	for _, set := range documents {
		var err error
		if files, err = addFiles(files, set.pattern, set.dir); err != nil {
			t.Fatal(err)
		}
	}
	linkOutside(files, "0123")
	released := map[string]bool{}
	for _, f := range files {
		released[f.path] = true
	}
	inside, outside := 0, 0
	for _, f := range files {
		for _, m := range fileLinks.FindAllStringSubmatch(string(f.content), -1) {
			inside++
			if to := path.Join(path.Dir(f.path), m[1]); !released[to] {
				t.Errorf("%s links to %s, which is not released", f.path, m[1])
			}
		}
		for _, part := range strings.Split(string(f.content), "](https://"+module+"/blob/0123/")[1:] {
			outside++
			to, _, _ := strings.Cut(part, ")")
			to, _, _ = strings.Cut(to, "#")
			if _, err := os.Stat(filepath.FromSlash(to)); err != nil {
				t.Errorf("%s: %v", f.path, err)
			}
		}
	}
	if inside < 100 || outside < 20 {
		t.Errorf("%d links to what is released and %d to the repository, expected more", inside, outside)
	}
}
