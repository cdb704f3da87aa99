// SPDX-License-Identifier: Apache-2.0

// Package page has the web page of a server, on which people send files and look at
// reports: one file, which loads only answers of its server.
package page

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/flamepage"
	"github.com/unwindd/unwindd/engine/internal/look"
	"github.com/unwindd/unwindd/engine/internal/stackpage"
)

// About has the facts about the server that the page needs.
type About struct {
	NeedsToken bool  // the caller has to show one
	KeepsAny   bool  // reports can be kept
	MaxBody    int64 // bytes that a request may send
}

var (
	//go:embed page.html
	layout string
	//go:embed page.css
	style string
	//go:embed page.js
	script string

	// whole is parsed where a page is written, not at the start of every command.
	whole = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(layout)) })
)

// reportSources are the scripts and the styles of reports.
var reportSources = [...]func() (script, style string){stackpage.Sources, flamepage.Sources}

// sources returns the hash-sources of scripts and styles, including the ones of reports.
func sources(own ...string) (scripts, styles string) {
	var s, t []string
	if len(own) == 2 {
		s, t = append(s, look.Source(own[0])), append(t, look.Source(own[1]))
	}
	for _, source := range reportSources {
		script, style := source()
		s, t = append(s, look.Source(script)), append(t, look.Source(style))
	}
	return strings.Join(s, " "), strings.Join(t, " ")
}

// Policy returns the Content-Security-Policy of the page. It binds reports in a frame of
// the page, too, which have their own policy besides: it allows the page's and the reports'
// scripts and styles, and requests to the server alone.
func Policy() string {
	scripts, styles := sources(look.Script+script, look.Style+style)
	return "default-src 'none'; script-src " + scripts + "; style-src " + styles +
		"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// ReportPolicy returns the Content-Security-Policy of a report as a page of its own:
// without an origin it reaches nothing of the server, whatever is in it.
func ReportPolicy() string {
	scripts, styles := sources()
	return "sandbox allow-scripts; default-src 'none'; script-src " + scripts + "; style-src " + styles +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// Write writes the page.
func Write(w io.Writer, a About) error {
	var b bytes.Buffer
	err := whole().Execute(&b, struct {
		About
		Style  template.CSS
		Script template.JS
	}{a, template.CSS(look.Style + style), template.JS(look.Script + script)}) //nolint:gosec // they are ours
	if err == nil {
		_, err = w.Write(b.Bytes())
	}
	return err
}
