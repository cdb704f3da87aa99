// SPDX-License-Identifier: Apache-2.0

// Package look is the common style and security policy of all pages: each page is one file,
// with its style and its script in it.
package look

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
)

// Style is the beginning of the style of every page: colours by light and dark, type,
// buttons, and the focused element.
//
//go:embed base.css
var Style string

// Script is the beginning of the script of every page, which has a button with the ID theme.
//
//go:embed theme.js
var Script string

//go:embed begin.html
var begin string

// Template parses the templates of a page. They have the template "begin", which writes a page up to its body: it takes
// Policy, Name and Style.
func Template(layout string) *template.Template {
	return template.Must(template.Must(template.New("page").Parse(begin)).Parse(layout))
}

// Policy lets a browser run one script and take one style, which are in the page, and nothing
// else: it loads nothing, and sends nothing (Content Security Policy Level 3).
func Policy(script, style string) string {
	return "default-src 'none'; script-src " + Source(script) + "; style-src " + Source(style) + "; base-uri 'none'; form-action 'none'"
}

// Source is a hash-source of Content Security Policy.
func Source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
