// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// fileLinks matches the links of a document to files, between their parentheses: a path, and
// a heading that it may name. A link with a colon has a scheme.
var fileLinks = regexp.MustCompile(`\]\(([^()\s:#]+)(#[^()\s]*)?\)`)

// linkOutside redirects the links of released documents to files that are not released: they
// lead to these files in the repository, at a commit.
func linkOutside(files []file, commit string) {
	released := map[string]bool{}
	for _, f := range files {
		for name := f.path; name != "."; name = path.Dir(name) {
			released[name] = true
		}
	}
	for i, f := range files {
		document, isDocument := strings.CutPrefix(f.path, docDir+"/")
		if !isDocument || path.Ext(document) != ".md" {
			continue
		}
		files[i].content = fileLinks.ReplaceAllFunc(f.content, func(link []byte) []byte {
			m := fileLinks.FindSubmatch(link)
			target := path.Join(path.Dir(document), string(m[1]))
			if _, err := os.Stat(filepath.FromSlash(target)); err != nil || released[docDir+"/"+target] {
				return link
			}
			return []byte("](https://" + module + "/blob/" + commit + "/" + target + string(m[2]) + ")")
		})
	}
}
